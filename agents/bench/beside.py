"""Beside: the durable nodes of LangGraph, on the same PostgreSQL, in a Python of its own."""

import json
import subprocess
from pathlib import Path
from typing import Any

from django.conf import settings

from knowledge.bench.errors import NotComparable

SIDE = Path(__file__).with_name("langgraph_side.py")
PATIENCE_SECONDS = 600


def langgraph(python: str, *, rounds: int, at_once: int) -> dict[str, Any]:
    """Return milliseconds of one turn of ten nodes, and turns a second of a crowd.

    `python` is one that has langgraph-checkpoint-postgres. Raises NotComparable.
    """
    request = {"address": settings.DATABASE_URL, "rounds": rounds, "at_once": at_once}
    try:
        done = subprocess.run(  # noqa: S603
            [python, str(SIDE)],
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
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
