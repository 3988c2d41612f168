"""Token stream: passes an answer on to who watches, while a model still writes it."""

import time
from dataclasses import dataclass

from agents.steps import events

# Redis and the reader are spared a message per token; nobody sees 25 of them a second apart.
EVERY_SECONDS = 0.04


@dataclass
class TokenStream:
    """What one step says while it still writes. `stream` empty: nobody watches."""

    stream: str = ""
    step: int = 0
    attempt: int = 1
    _waiting: str = ""
    _replaces: bool = False
    _published: float = 0.0
    has_text: bool = False  # whether anything was passed on that still holds

    def add(self, text: str) -> None:
        """Pass on a piece, soon."""
        self._waiting += text
        if time.monotonic() - self._published >= EVERY_SECONDS:
            self.flush()

    def replace(self, text: str = "") -> None:
        """Say that everything this turn's answer said so far is void, and begins with `text`."""
        self._waiting, self._replaces = text, True
        self.flush()

    def withdraw(self) -> None:
        """Say that what this step said is void, if anything was."""
        self._waiting = ""
        if self.has_text:
            self.replace()

    def flush(self) -> None:
        """Pass on what waits."""
        if not self.stream or not (self._waiting or self._replaces):
            return
        events.publish(
            self.stream,
            "token",
            step=self.step,
            attempt=self.attempt,
            text=self._waiting,
            replaces=self._replaces,
        )
        self._published = time.monotonic()
        self.has_text = bool(self._waiting) or (self.has_text and not self._replaces)
        self._waiting, self._replaces = "", False
