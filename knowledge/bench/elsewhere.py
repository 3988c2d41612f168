"""Elsewhere: the other side of a comparison, a script run by a Python that has its libraries."""

import json
import subprocess
from pathlib import Path
from typing import Any

from knowledge.bench.errors import NotComparable

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
