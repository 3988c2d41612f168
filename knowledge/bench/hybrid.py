"""Hybrid: LangChain's hybrid search on the rows of a collection, run by a Python of its own."""

from pathlib import Path

from django.conf import settings
from django.db import connection

from knowledge.bench.corpus import Questions
from knowledge.bench.elsewhere import told
from knowledge.names import LOCAL_MODEL

SIDE = Path(__file__).with_name("hybrid_side.py")
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
    answer = told(python, SIDE, request)
    return answer["milliseconds"], round(answer["found"], 3)
