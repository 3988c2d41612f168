"""Thoughts: keeps what a model thinks aloud out of what it says.

Small models served without a reasoning parser put their thinking before the reply, in the text.
"""

from dataclasses import dataclass

BEGIN, END = "<think>", "</think>"


@dataclass
class Thoughts:
    """The text of one reply on its way, piece by piece."""

    _held: str = ""  # not decided yet: the beginning may still become a mark
    _state: str = "beginning"

    def without(self, piece: str) -> str:
        """Return as much of the text as is known to be said, now that this piece is there."""
        if self._state == "saying":
            return piece
        self._held += piece
        if self._state == "beginning":
            begun = self._held.lstrip()
            if BEGIN.startswith(begun[: len(BEGIN)]) and len(begun) < len(BEGIN):
                return ""
            if not begun.startswith(BEGIN):
                return self._say(self._held)
            self._state = "thinking"
        _, ended, said = self._held.partition(END)
        if not ended or not said.strip():
            return ""
        return self._say(said.lstrip())

    def rest(self) -> str:
        """Return what was held back at the end of the reply: nothing of a thought."""
        return self._say(self._held) if self._state == "beginning" else ""

    def _say(self, text: str) -> str:
        self._state, self._held = "saying", ""
        return text
