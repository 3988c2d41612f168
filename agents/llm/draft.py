"""Draft: a free text from its first piece to the whole of it, without what is around it."""

from collections.abc import Sequence
from dataclasses import replace

from agents.llm.degeneration import Material, broken
from agents.llm.fragments import is_fragment
from agents.llm.outcomes import malformed
from agents.llm.requests import FRAGMENT, Message, Reply
from agents.llm.retry import Listener
from agents.llm.wrapper import Wrapper, unwrapped

CUT = "the reply ends in the midst of a word"


class Draft:
    """A text that one model writes in answer to these messages, for who listens.

    `exempt` are texts among the instructions that it may repeat.
    """

    def __init__(
        self, messages: Sequence[Message], exempt: Sequence[str], listener: Listener
    ) -> None:
        self.messages = messages
        self.listener = listener
        self.material = Material(messages, exempt)
        self._wrapper = Wrapper(self.material.data)

    def take(self, text: str) -> None:
        """Take a piece as it arrives."""
        if inside := self._wrapper.without(text):
            self.listener.add(inside)

    def restart(self) -> None:
        """What came so far is void."""
        self._wrapper = Wrapper(self.material.data)
        self.listener.restart()

    def ended(self, reply: Reply, *, last: bool) -> Reply:
        """Return the reply, of which all pieces are there, without what is around its text.

        Raises ModelFailure for one that is none, mendable if another may be better; of the `last`
        one what is there is returned, as a fragment where its end is missing.
        """
        text = unwrapped(reply.text, self.material.data)
        if fault := self.material.fault(text):
            raise malformed(reply, fault, mendable=bool(broken(text)) and not last)
        is_cut = reply.finish_reason == "stop" and is_fragment(text, self.messages)
        if is_cut and not last:
            raise malformed(reply, CUT)
        if rest := self._wrapper.rest():
            self.listener.add(rest)
        return replace(reply, text=text, finish_reason=FRAGMENT if is_cut else reply.finish_reason)
