"""Beside: the durable nodes of LangGraph, on the same PostgreSQL, in a Python of its own."""

from pathlib import Path
from typing import Any

from django.conf import settings

from knowledge.bench.elsewhere import told

SIDE = Path(__file__).with_name("langgraph_side.py")


def langgraph(python: str, *, rounds: int, at_once: int) -> dict[str, Any]:
    """Return milliseconds of one turn of ten nodes, and turns a second of a crowd.

    `python` is one that has langgraph-checkpoint-postgres. Raises NotComparable.
    """
    request = {"address": settings.DATABASE_URL, "rounds": rounds, "at_once": at_once}
    figures: dict[str, Any] = told(python, SIDE, request)
    return figures
