"""Stops: ends the calls of models that a turn still has under way when it has ended without them.

A turn is cancelled, forgotten or expires in one process while another asks a model for it. The word
goes through a stream in Redis that every process reads which asks. Should it be lost, the call is
made to its end, and what it brings is dropped.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import redis

from agents.errors import AgentError
from agents.steps import events
from agents.steps.events import Command

ENDED = "turns:ended"
# More than end in the time of a turn; of older ones nothing is under way any more.
MOST_KNOWN = 5000
BLOCK_MS = 4000
PAUSE_SECONDS = 1.0

Stop = Callable[[], object]


class TurnEnded(AgentError):
    """The turn ended while a model was asked for it."""

    permanent = True


def stop_command(turn: Any) -> Command:
    """Return the command that has every process end what it asks for the turn."""
    return ("XADD", ENDED, "MAXLEN", "~", MOST_KNOWN, "*", "turn", str(turn))


class Stops:
    """The calls that are under way in this process, by turn, and the turns that ended lately."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, list[Stop]] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._process = 0

    @contextmanager
    def heeded(self, turn: Any, stop: Stop) -> Iterator[None]:
        """Have `stop` called, in another thread, should the turn end while the block runs.

        Raises TurnEnded when it has ended already. Without a turn nothing stops the block.
        """
        if turn is None:
            yield
            return
        self.refuse(turn)
        with self._lock:
            self._calls.setdefault(str(turn), []).append(stop)
        try:
            # Again: it may have ended between the two.
            self.refuse(turn)
            yield
        finally:
            with self._lock:
                stops = self._calls[str(turn)]
                stops.remove(stop)
                if not stops:
                    del self._calls[str(turn)]

    def refuse(self, turn: Any) -> None:
        """Raise TurnEnded for a turn that is known to have ended."""
        self._listen()
        if str(turn) in self._ended:
            raise TurnEnded

    def stop(self, turn: str) -> None:
        """End what is under way for the turn here, and let nothing more begin."""
        with self._lock:
            self._ended[turn] = None
            while len(self._ended) > MOST_KNOWN:
                self._ended.popitem(last=False)
            stops = list(self._calls.get(turn, ()))
        for stop in stops:
            stop()

    def _listen(self) -> None:
        with self._lock:
            if self._process == os.getpid():
                return
            self._process = os.getpid()
        threading.Thread(target=self._run, name="stops", daemon=True).start()

    def _run(self) -> None:
        after = "0-0"
        while True:
            try:
                told: Any = events.connection().xread({ENDED: after}, block=BLOCK_MS)
            except redis.RedisError:
                time.sleep(PAUSE_SECONDS)
                continue
            entries = [entry for _, some in told or () for entry in some]
            for entry, fields in entries:
                after = entry
                self.stop(fields["turn"])


STOPS = Stops()
