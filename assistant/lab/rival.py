"""Rival: the other side of a comparison, a script run by a Python that has its libraries."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from assistant.lab.corpus import Questions
from knowledge.errors import KnowledgeError
from knowledge.identifiers import LOCAL_MODEL

LANGGRAPH = Path(__file__).with_name("rival_langgraph.py")
LANGCHAIN_INGEST = Path(__file__).with_name("rival_langchain_ingest.py")
LANGCHAIN_SEARCH = Path(__file__).with_name("rival_langchain_search.py")
PATIENCE_SECONDS = 3600
ADDRESS = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


class NotComparable(KnowledgeError):
    """The other side of a comparison cannot be measured."""


def run_script(python: str, script: Path, request: dict[str, Any]) -> Any:
    """Return what the script prints last, as JSON; it reads the request as JSON from its input.

    Raises NotComparable.
    """
    try:
        done = subprocess.run(  # noqa: S603
            [python, str(script)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotComparable(f"{python} cannot run the comparison: {error}") from error
    if done.returncode:
        raise NotComparable(f"{python} could not compare: {done.stderr.strip()[-1000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def langgraph(python: str, *, rounds: int, at_once: int) -> dict[str, Any]:
    """Return milliseconds of one turn of ten nodes, and turns a second of a crowd.

    `python` is one that has langgraph-checkpoint-postgres. Raises NotComparable.
    """
    request = {"address": settings.DATABASE_URL, "rounds": rounds, "at_once": at_once}
    figures: dict[str, Any] = run_script(python, LANGGRAPH, request)
    return figures


def ingestion(python: str, files: Sequence[Path], model: Path) -> dict[str, Any]:
    """Return LangChain's chunks and seconds for these files, and for the same ones again.

    `python` is one that has LangChain; `model` is the folder of the embedding model. It stores in
    this database. Raises NotComparable.
    """
    request = {
        "files": [str(path) for path in files],
        "model": str(model),
        "database": _address(),
    }
    figures: dict[str, Any] = run_script(python, LANGCHAIN_INGEST, request)
    return figures


def hybrid_search(python: str, collection: str, questions: Questions) -> tuple[list[float], float]:
    """Return the milliseconds of each question, and which part found its chunk.

    `python` is one that has langchain-postgres; it copies the rows and indexes them first.
    Raises NotComparable.
    """
    request = {
        "database": _address(),
        "collection": collection,
        "model": LOCAL_MODEL,
        "limit": settings.SEARCH_RESULTS_LIMIT,
        "questions": questions.texts,
        "vectors": questions.vectors.tolist(),
        "meant": questions.sources,
    }
    figures = run_script(python, LANGCHAIN_SEARCH, request)
    return figures["milliseconds"], round(figures["found"], 3)


def _address() -> dict[str, str]:
    """Return where this database is, by Django's names."""
    database = connection.settings_dict
    return {key: str(database[key] or "") for key in ADDRESS}
