"""Talk: messages to billing one after the other, with what the conversation keeps between them."""

from dataclasses import dataclass, field
from typing import Any

from agents.contract import REGISTRY
from agents.names import Role
from agents.steps.records import Claim
from agents.tools import toolbox
from agents.tools.toolbox import Toolbox
from tests.agents.tools.bench import step_of
from tests.conftest import Begin

NOW = "2025-10-30T10:00:00+00:00"


@dataclass
class Talk:
    """A customer who talks to billing, which asks no model."""

    begin: Begin
    user_id: str = "u123"
    language: str = "en"
    state: dict[str, Any] = field(default_factory=dict)
    writes: dict[str, Any] = field(default_factory=dict)  # of the last turn

    def step(self) -> Claim:
        """Return the step of billing in a new turn, claimed."""
        return step_of(self.begin(user_id=self.user_id), Role.BILLING)

    def say(self, text: str, claim: Claim | None = None, **payload: Any) -> str:
        """Say something in a turn of its own, or at a step of one; return the reply."""
        claim = claim or self.step()
        given = {"text": text, "language": self.language, "current_time": NOW}
        with toolbox.lend(Toolbox.of(claim)):
            done = REGISTRY[Role.BILLING].perform(given | self.state | payload, None)
        self.writes = done.writes
        self.state |= self.writes.get("state_updates") or {}
        reply: str = self.writes["response"]
        return reply

    @property
    def form(self) -> dict[str, Any] | None:
        """The form that is open."""
        return self.state.get("refund_form")

    @property
    def actions(self) -> list[str]:
        """What the buttons say."""
        actions: list[str] = self.writes["suggested_actions"]
        return actions
