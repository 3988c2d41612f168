"""Parsers: the children of ingests last from test to test, as to start one costs 0.6 s of a core.

They are the real ones. What they do when they start, end, and come to grief is tested in
`tests/knowledge/parsing/test_sandbox.py`, whose readers start their own.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from knowledge.ingestion import loader, preparer
from knowledge.parsing import Limits
from knowledge.sandbox.reader import Answer, Child, Reader

WHOLE = (b'{"pages"', b'{"prepared"', b'{"refused"')  # such an answer leaves nothing behind

_waiting: list[Child] = []
# A child dies with the thread that started it.
_starter = ThreadPoolExecutor(1, thread_name_prefix="parsers")


class Lasting(Child):
    """A child that waits for the next reader, unless its last file was left or brought it down."""

    sound = True

    def ask(self, task: str, about: dict[str, Any], body: bytes) -> bytes:
        """Return what it says of a file or a page."""
        self.sound = False
        answer = super().ask(task, about, body)
        self.sound = answer.startswith(WHOLE)
        return answer

    def end(self) -> None:
        """Leave it to the next."""
        if self.sound and self.is_alive:
            _waiting.append(self)
        else:
            super().end()


class Sharing(Reader):
    """A reader that takes a child that waits, if there is one with its limits."""

    def ask_child(self, task: str, about: dict[str, Any], body: bytes) -> Answer:
        """Return what a child says of it."""
        self.child = self.child or taken(self.limits)
        return super().ask_child(task, about, body)


def taken(limits: Limits) -> Child:
    """Return a child that waits, or a new one."""
    for child in _waiting:
        if child.limits == limits and child.is_alive:
            _waiting.remove(child)
            return child
    return _starter.submit(Lasting, limits).result()


@contextmanager
def lasting_parsers() -> Iterator[None]:
    """Have ingests share children for the time of the block."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (loader, preparer):
            patch.setattr(module, "Reader", Sharing)
        yield
    while _waiting:
        Child.end(_waiting.pop())
    _starter.shutdown()
