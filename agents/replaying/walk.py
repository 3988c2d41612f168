"""Walk: takes a stored turn through the routing table once more, in this process.

Nothing of the turn is touched: no row, no event, no conversation. Steps that run together take
turns here; as at their first time, none of them sees what the others wrote.
"""

import json
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from agents import payloads, thinking
from agents.contract import REGISTRY, Done
from agents.languages import ENGLISH
from agents.llm.choices import Choice
from agents.llm.model import Model
from agents.models import Envelope, ModelCall, Step
from agents.names import Role
from agents.payloads import Payload
from agents.replaying.changes import Changes, UnusableChange
from agents.replaying.recorded import Recorded, subject
from agents.routing import decide
from agents.usage import calls_of
from prompts.texts import replaced

STORED, WORKED = "stored", "worked"


@dataclass(frozen=True)
class Played:
    """One step of the replay, beside the step that did this work then (None: nobody did)."""

    number: int
    role: Role
    then: Step | None
    wrote: dict[str, Any]
    mode: str = ""
    degraded: str = ""
    how: str = WORKED  # or STORED: taken as it was written then
    calls: Recorded | None = None


@dataclass
class Walk:
    """One replay on its way."""

    envelope: Envelope
    changes: Changes
    since: int = 1  # number of the first step that works; those before are taken as they were
    played: list[Played] = field(default_factory=list)
    answer: str = ""
    status: str = ""  # empty: it went round too often to end
    _said: str = ""  # what the turn ends with when that was no agent's

    def __post_init__(self) -> None:
        self.steps = list(self.envelope.steps.all())
        if self.since > max((step.number for step in self.steps), default=0):
            raise UnusableChange(f"--from {self.since}: the turn has {len(self.steps)} steps.")
        seen = payloads.before(self.envelope, self.steps)
        self.saw = {step.number: payload for step, payload in zip(self.steps, seen, strict=True)}
        self.calls: list[ModelCall] = list(calls_of(self.envelope.pk))
        self._by_role: dict[Role, list[Step]] = defaultdict(list)
        for step in self.steps:
            self._by_role[Role(step.role)].append(step)

    def run(self) -> None:
        """Go from the turn's memory to its end. Raises AgentError and KnowledgeError of agents."""
        with ExitStack() as stack:
            for name, written in self.changes.prompts.items():
                stack.enter_context(replaced(name, written))
            payload = payloads.first(self.envelope)
            while len(self.played) < settings.MAX_PROCESS_COUNT:
                decision = self._decided(payload)
                payload = payloads.decided(payload, decision)
                if not decision["to"]:
                    break
                for done in [self._worked(Role(role), payload) for role in decision["to"]]:
                    payload = payloads.written(payload, done.role, done.wrote)
        self.answer = self._said or str(payload.get("response", ""))

    def _decided(self, payload: Payload) -> dict[str, Any]:
        """Return what the table decides now, as it is stored; before `since`, what it did."""
        then = self._then(Role.MANAGER)
        if then and self._keeps(then):
            done = self._add(Role.MANAGER, then, Done(then.output), STORED)
            self._said = self.envelope.payload.get("response", "") if then.output["ends"] else ""
        else:
            decision = decide(payload)
            record: dict[str, Any] = json.loads(json.dumps(decision.record()))
            done = self._add(Role.MANAGER, then, Done(record))
            if decision.says:
                self._said = decision.says.said_in(payload.get("language", ENGLISH))
        self.status = done.wrote["ends"] or ""
        return done.wrote

    def _worked(self, role: Role, payload: Payload) -> Played:
        then = self._then(role)
        calls = [call for call in self.calls if then and call.step_number == then.number]
        if then and (self._keeps(then) or self._is_settled(then, payload, calls)):
            done = Done(then.output, then.mode, then.degraded)
            return self._add(role, then, done, STORED)
        recorded = Recorded(self.envelope.pk, then.number if then else None, self.calls)
        llm = self._model(role, then, calls, recorded)
        with thinking.lent(llm, role) as own:
            done = REGISTRY[role].perform(payload, own)
        return self._add(role, then, done, calls=recorded)

    def _keeps(self, then: Step) -> bool:
        return then.number < self.since and then.status == Step.Status.DONE

    def _is_settled(self, then: Step, payload: Payload, calls: list[ModelCall]) -> bool:
        """Whether a step cannot come to anything else: it reads the same and asks nobody."""
        role = Role(then.role)
        if then.status != Step.Status.DONE or thinking.asker_of(role) in self.changes.models:
            return False
        if any(call.prompt in self.changes.prompts for call in calls):
            return False
        agent = REGISTRY[role]
        if agent.thought and calls:
            return False
        seen = self.saw[then.number]
        return all(payload.get(name) == seen.get(name) for name in agent.contract.reads)

    def _model(
        self, role: Role, then: Step | None, calls: list[ModelCall], recorded: Recorded
    ) -> Model | None:
        """Return the model that was asked then, or the one it is changed to, or none."""
        asker = thinking.asker_of(role)
        choice = settings.MODELS.get(asker, Choice())
        if calls:
            choice = _as_then(choice, calls)
        elif then:
            choice = replace(choice, model="", second="")
        if asker in self.changes.models:
            choice = replace(choice, model=self.changes.models[asker], second="")
        if not choice.model:
            return None
        about = subject(self.envelope.pk, asker, self._number)
        return Model(choice, about, journal=recorded)

    @property
    def _number(self) -> int:
        return len(self.played) + 1

    def _then(self, role: Role) -> Step | None:
        """Return the step of then that stands beside the next one: the same role's next."""
        left = self._by_role[role]
        return left.pop(0) if left else None

    def _add(
        self,
        role: Role,
        then: Step | None,
        done: Done,
        how: str = WORKED,
        calls: Recorded | None = None,
    ) -> Played:
        played = Played(self._number, role, then, done.writes, done.mode, done.degraded, how, calls)
        self.played.append(played)
        return played


def _as_then(choice: Choice, calls: list[ModelCall]) -> Choice:
    """Return the choice that made these calls: models in their order, and the bounds of a reply."""
    asked = list(dict.fromkeys(call.request["model"] for call in calls))
    first = calls[0].request
    return replace(
        choice,
        model=asked[0],
        second=asked[1] if len(asked) > 1 else "",
        max_tokens=first["max_tokens"],
        temperature=first["temperature"],
    )
