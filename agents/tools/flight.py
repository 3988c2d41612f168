"""Flight: one attempt at a call of a tool, in a thread of its own, until it lands or is too late.

A thread cannot be ended from outside, so one that is too late goes on. Nothing it does counts: who
waited has written down under the key of the call that it was too late, and a second row cannot be.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import Generic, TypeVar

from django.db import connection

# So many calls of one tool may go on in a process that nobody waits for any more.
MOST_ADRIFT = 8
T = TypeVar("T")


class TooLate(Exception):
    """Nobody waits for this call any more."""


class Adrift:
    """The threads of this process whose calls were too late, by tool."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def change(self, tool: str, by: int) -> None:
        """Note that one more is adrift, or one less."""
        with self._lock:
            self._counts[tool] += by

    def count(self, tool: str) -> int:
        """Return how many calls of this tool are adrift."""
        with self._lock:
            return self._counts[tool]

    def is_full(self, tool: str) -> bool:
        """Whether no call of this tool should begin, as those before still hang."""
        return self.count(tool) >= MOST_ADRIFT


ADRIFT = Adrift()


class Flight(Generic[T]):
    """One attempt under way."""

    def __init__(self, tool: str, act: Callable[[], T], seconds: float) -> None:
        self.tool, self.seconds = tool, seconds
        self.began = time.monotonic()
        self._future: Future[T] = Future()
        self._act = act
        # A daemon: a tool that hangs must not keep a worker from ending.
        run = copy_context().run
        threading.Thread(target=run, args=(self._run,), name=f"tool {tool}", daemon=True).start()

    def land(self) -> T:
        """Return what `act` returns, or raise what it raises. Raises TooLate after `seconds`."""
        wait([self._future], timeout=max(0.0, self.began + self.seconds - time.monotonic()))
        if not self._future.done():
            ADRIFT.change(self.tool, 1)
            self._future.add_done_callback(lambda _: ADRIFT.change(self.tool, -1))
            raise TooLate
        return self._future.result()

    def _run(self) -> None:
        try:
            result = self._act()
        except BaseException as error:  # noqa: BLE001 handed on to who waits
            connection.close()
            self._future.set_exception(error)
        else:
            connection.close()
            self._future.set_result(result)


def landed(flight: Flight[T] | None) -> T:
    """Return what came of a flight; of one that could not begin, nothing will. Raises TooLate."""
    if flight is None:
        raise TooLate
    return flight.land()
