"""Phases: what a start is at and how long each part of it took, told on standard error.

Standard library only: the first phases come before Django is there.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Of this process, nearly: the command line imports this first.
BEGIN = time.monotonic()


@contextmanager
def phase(doing: str) -> Iterator[None]:
    """Say what the block does, and behind it, once it is done, how long that took."""
    begin = time.monotonic()
    sys.stderr.write(f"{doing} … ")
    sys.stderr.flush()
    try:
        yield
    except BaseException:
        sys.stderr.write("\n")
        raise
    sys.stderr.write(f"{time.monotonic() - begin:.0f} s\n")


def tell(text: str) -> None:
    """Say what is done by now, behind the seconds since the start."""
    sys.stderr.write(f"{elapsed():4.0f} s  {text}\n")
    sys.stderr.flush()


def elapsed() -> float:
    """Return the seconds since the start of this process."""
    return time.monotonic() - BEGIN
