"""Sensible: a model server whose replies let a turn go on; a test replaces single ones."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from assistant.lab.model_server import Call, ModelServer, Response, serving
from assistant.lab.scripted_replies import sensible

Reply = Callable[[Call], Response | dict[str, Any]] | Response | dict[str, Any]


@dataclass
class Sensible:
    """A running model server: sensible replies, each after `seconds`, some replaced."""

    seconds: float = 0.0
    replaced: dict[str, list[Reply]] = field(default_factory=dict)
    server: ModelServer = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def says(self, prompt: str, *replies: Reply) -> None:
        """Answer this prompt so, one after the other; the last holds from then on."""
        self.replaced[prompt] = list(replies)

    def reset(self) -> None:
        """Forget what was replaced, asked and how long it took."""
        self.replaced.clear()
        self.server.ledger.clear()
        self.seconds = 0.0

    def reply(self, asked: Call) -> Response:
        """Return the reply to a call: values are laid over the sensible ones."""
        with self._lock:
            replies = self.replaced.get(asked.prompt)
            reply = replies.pop(0) if replies and len(replies) > 1 else (replies or [{}])[0]
        said = reply(asked) if callable(reply) else reply
        if isinstance(said, Response):
            return replace(said, seconds=said.seconds or self.seconds)
        usual = sensible(asked)
        text = usual if isinstance(usual, str) else json.dumps(usual | said, ensure_ascii=False)
        return Response(text, seconds=self.seconds)


@contextmanager
def thinking() -> Iterator[Sensible]:
    """Run a sensible model server for the time of the block."""
    models = Sensible()
    with serving(models.reply) as models.server:
        yield models
