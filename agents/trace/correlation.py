"""Correlation: which turn, step and role a line of the log, or an error, belongs to.

It follows the work through coroutines and threads that copy their context, and costs a look at one
variable where nobody asks.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

_names: ContextVar[Mapping[str, Any]] = ContextVar("correlation", default=MappingProxyType({}))


def current() -> dict[str, Any]:
    """Return what is being worked on: of conversation, turn, step, attempt and role, what is known.

    Ids are texts, numbers are numbers. Of a request also `traceparent`, the span of who asks.
    """
    return dict(_names.get())


def note(**names: Any) -> None:
    """Say what the rest of this context is about: a request that has found its turn."""
    _names.set(_told(names))


@contextmanager
def about(**names: Any) -> Iterator[None]:
    """Say what the block is about, beside what is known around it."""
    reset = _names.set(_told(names))
    try:
        yield
    finally:
        _names.reset(reset)


def _told(names: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: value if isinstance(value, int) else str(value) for name, value in names.items()}
    return current() | told
