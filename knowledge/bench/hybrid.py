"""Hybrid: LangChain's hybrid search on the rows of a collection, run by a Python of its own."""

import json
import subprocess
from pathlib import Path

from django.conf import settings
from django.db import connection

from knowledge.bench.corpus import Questions
from knowledge.bench.errors import NotComparable
from knowledge.names import LOCAL_MODEL

SIDE = Path(__file__).with_name("hybrid_side.py")
PATIENCE_SECONDS = 3600
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
    answer = json.loads(done.stdout)
    return answer["milliseconds"], round(answer["found"], 3)
