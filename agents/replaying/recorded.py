"""Recorded: answers the calls of a replay with what models replied when the turn took place.

Only a request that nobody made then is really asked. Its reply is kept under "replay/<turn>/…",
so that the same replay costs nothing the second time, and counts for the day but not for the turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.llm import journal
from agents.llm.journal import Entry, Subject
from agents.llm.outcomes import REPLIED, ModelFailure, Outcome
from agents.llm.requests import Reply
from agents.models import ModelCall
from agents.usage import REPLAY


def subject(turn: Any, role: str, number: int) -> Subject:
    """Return what the calls of one step of a replay are made for.

    Nobody but another replay is ever served from them: they belong to no asker.
    """
    return Subject(
        name=f"{REPLAY}{turn}/{number}",
        role=role,
        owner=REPLAY.rstrip("/"),
        envelope_id=turn,
        step_number=number,
        # Another replay may have asked for this step already.
    )


@dataclass
class Recorded:
    """The journal of one step of a replay."""

    turn: Any
    step: int | None  # number of the step that did this work then
    then: Sequence[ModelCall]  # every call of the turn, in order
    found: list[ModelCall] = field(default_factory=list)  # replies from then
    again: list[ModelCall] = field(default_factory=list)  # replies that an earlier replay got
    asked: list[ModelCall] = field(default_factory=list)  # really asked, just now

    def find(self, entry: Entry) -> ModelCall | None:
        """Return the call that was answered then, or in an earlier replay.

        Raises the ModelFailure of a call that failed then: it would be no replay otherwise.
        """
        equal = [call for call in self.then if call.request_hash == entry.digest]
        here = [call for call in equal if call.step_number == self.step]
        elsewhere = [call for call in equal if call.outcome in REPLIED]
        if call := next(reversed(here or elsewhere), None):
            self.found.append(call)
            if call.outcome not in REPLIED:
                raise ModelFailure(Outcome(call.outcome), call.error)
            return call
        return self._earlier(entry)

    def _earlier(self, entry: Entry) -> ModelCall | None:
        earlier = ModelCall.objects.filter(
            envelope=self.turn,
            subject__startswith=REPLAY,
            request_hash=entry.digest,
            outcome__in=REPLIED,
        )
        call = earlier.order_by("pk").last()
        if call:
            self.again.append(call)
        return call

    def answered(self, entry: Entry, reply: Reply, attempts: list[dict[str, Any]]) -> ModelCall:
        """Keep the reply to a question nobody asked then."""
        self.asked.append(journal.answered(entry, reply, attempts))
        return self.asked[-1]

    def failed(
        self, entry: Entry, failure: ModelFailure, attempts: list[dict[str, Any]]
    ) -> ModelCall:
        """Keep that such a question was not answered."""
        self.asked.append(journal.failed(entry, failure, attempts))
        return self.asked[-1]

    def amend(self, pk: int, failure: ModelFailure) -> None:
        """Note that a reply is unusable, unless it is one from then: that is history."""
        if pk in {call.pk for call in self.asked}:
            journal.amend(pk, failure)

    def reply_of(self, call: ModelCall) -> Reply:
        """Return the reply of a stored call."""
        return journal.reply_of(call)
