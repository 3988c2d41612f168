"""Rival: the other side of a comparison, a script run by a Python that has its libraries."""

import json
import subprocess
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from assistant.lab.corpus import Questions
from knowledge.errors import KnowledgeError
from knowledge.identifiers import LOCAL_MODEL


class NotComparable(KnowledgeError):
    """The other side of a comparison cannot be measured."""


PATIENCE_SECONDS = 3600


def told(python: str, side: Path, request: dict[str, Any]) -> Any:
    """Return what the script prints last, as JSON; it reads the request as JSON from its input.

    Raises NotComparable.
    """
    try:
        done = subprocess.run(  # noqa: S603
            [python, str(side)],
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


LANGGRAPH = Path(__file__).with_name("rival_langgraph.py")


def langgraph(python: str, *, rounds: int, at_once: int) -> dict[str, Any]:
    """Return milliseconds of one turn of ten nodes, and turns a second of a crowd.

    `python` is one that has langgraph-checkpoint-postgres. Raises NotComparable.
    """
    request = {"address": settings.DATABASE_URL, "rounds": rounds, "at_once": at_once}
    figures: dict[str, Any] = told(python, LANGGRAPH, request)
    return figures


HYBRID = Path(__file__).with_name("rival_hybrid.py")
ADDRESS = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


def beside(collection: str, questions: Questions, python: str) -> tuple[list[float], float]:
    """Return the milliseconds of each question, and which part found its chunk.

    `python` is one that has langchain-postgres; it copies the rows and indexes them first.
    Raises NotComparable.
    """
    database = connection.settings_dict
    request = {
        "database": {key: str(database[key] or "") for key in ADDRESS},
        "collection": collection,
        "model": LOCAL_MODEL,
        "limit": settings.SEARCH_RESULTS_LIMIT,
        "questions": questions.texts,
        "vectors": questions.vectors.tolist(),
        "meant": questions.meant,
    }
    answer = told(python, HYBRID, request)
    return answer["milliseconds"], round(answer["found"], 3)
