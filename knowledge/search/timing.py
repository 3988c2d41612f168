"""Timing: what the steps of a search took."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

Milliseconds = dict[str, float]


@contextmanager
def timed(milliseconds: Milliseconds, step: str) -> Iterator[None]:
    """Write down what the block takes, also when it fails."""
    begin = perf_counter()
    try:
        yield
    finally:
        milliseconds[step] = round((perf_counter() - begin) * 1000, 2)
