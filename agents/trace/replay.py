"""Replay: a stored turn run once more beside the old one, which stays as it is."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.contract import REGISTRY, Done
from agents.errors import AgentError
from agents.llm import journal
from agents.llm.journal import Entry, Subject
from agents.llm.model import Model
from agents.llm.outcomes import REPLIED, ModelFailure, Outcome
from agents.llm.requests import Choice, Reply
from agents.models import Envelope, ModelCall, Step
from agents.names import THINKERS, Role
from agents.routing import decide
from agents.steps import model_context, records
from agents.steps.records import Payload
from agents.trace.usage import REPLAY, calls_of, dollars
from agents.words import ENGLISH
from knowledge.providers import parse_model_name, provider_names
from prompts.prompt import DECLARED
from prompts.texts import PromptError, parse, replaced


class UnusableChange(AgentError):
    """What is to be changed cannot be."""


@dataclass(frozen=True)
class Changes:
    """Other models by asker, and other prompt files by the name of the prompt."""

    models: Mapping[str, str] = field(default_factory=dict)  # {"response": "model@provider"}
    prompts: Mapping[str, str] = field(default_factory=dict)  # {"response": the file's text}


def changes(models: Sequence[str], prompts: Sequence[str]) -> Changes:
    """Return what ROLE=MODEL and PROMPT=FILE ask for. Raises UnusableChange."""
    return Changes(dict(map(_model, models)), dict(map(_prompt, prompts)))


def _model(said: str) -> tuple[str, str]:
    asker, _, model = said.partition("=")
    if asker not in THINKERS:
        raise UnusableChange(
            f"--model {said!r}: {asker!r} asks no model; these do: {', '.join(THINKERS)}."
        )
    name, provider = parse_model_name(model)
    if not name or provider not in settings.PROVIDERS:
        raise UnusableChange(
            f"--model {said!r}: write {asker}=model@provider, with one of these providers: "
            f"{provider_names()}."
        )
    return asker, f"{name}@{provider}"


def _prompt(said: str) -> tuple[str, str]:
    name, _, file = said.partition("=")
    if name not in DECLARED:
        raise UnusableChange(
            f"--prompt {said!r}: there is no prompt {name!r}; there are: "
            f"{', '.join(sorted(DECLARED))}."
        )
    try:
        written = Path(file).read_text(encoding="utf-8")
        text = parse(name, written)
    except (OSError, UnicodeDecodeError, PromptError) as error:
        raise UnusableChange(f"--prompt {said!r}: {error}") from error
    if wrong := DECLARED[name].variables ^ set(text.kinds):
        raise UnusableChange(
            f"--prompt {said!r}: the file and Docent differ in the variables: "
            f"{', '.join(sorted(wrong))}."
        )
    return name, written


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

    def store_reply(self, entry: Entry, reply: Reply, attempts: list[dict[str, Any]]) -> ModelCall:
        """Keep the reply to a question nobody asked then."""
        self.asked.append(journal.store_reply(entry, reply, attempts))
        return self.asked[-1]

    def store_failure(
        self, entry: Entry, failure: ModelFailure, attempts: list[dict[str, Any]]
    ) -> ModelCall:
        """Keep that such a question was not answered."""
        self.asked.append(journal.store_failure(entry, failure, attempts))
        return self.asked[-1]

    def amend(self, pk: int, failure: ModelFailure) -> None:
        """Note that a reply is unusable, unless it is one from then: that is history."""
        if pk in {call.pk for call in self.asked}:
            journal.amend(pk, failure)

    def reply_of(self, call: ModelCall) -> Reply:
        """Return the reply of a stored call."""
        return journal.reply_of(call)


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
        seen = records.before(self.envelope, self.steps)
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
            payload = records.first(self.envelope)
            while len(self.played) < settings.MAX_PROCESS_COUNT:
                decision = self._decided(payload)
                payload = records.decided(payload, decision)
                if not decision["to"]:
                    break
                for done in [self._worked(Role(role), payload) for role in decision["to"]]:
                    payload = records.written(payload, done.role, done.wrote)
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
        with model_context.lent(llm, role) as own:
            done = REGISTRY[role].perform(payload, own)
        return self._add(role, then, done, calls=recorded)

    def _keeps(self, then: Step) -> bool:
        return then.number < self.since and then.status == Step.Status.DONE

    def _is_settled(self, then: Step, payload: Payload, calls: list[ModelCall]) -> bool:
        """Whether a step cannot come to anything else: it reads the same and asks nobody."""
        role = Role(then.role)
        if then.status != Step.Status.DONE or model_context.asker_of(role) in self.changes.models:
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
        asker = model_context.asker_of(role)
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


def comparison(walk: Walk) -> dict[str, Any]:
    """Return both sides of a replay that has run, step by step, and whether they are the same.

    A step's `then` and `now` hold only what differs. `how` is "stored" for a step taken as it was
    written then. A call's `how` is "journal" (answered then), "replayed" (asked in an earlier
    replay) or "asked" (just now, and paid for). Cost in US dollars; None: some of it is not known.
    """
    envelope = walk.envelope
    steps = [_step(played) for played in walk.played]
    route = {
        "then": [step.role for step in walk.steps if step.role != Role.MANAGER],
        "now": [str(played.role) for played in walk.played if played.role != Role.MANAGER],
    }
    answer = {"then": str(envelope.payload.get("response", "")), "now": walk.answer}
    status = {"then": envelope.status, "now": walk.status}
    same = not any(step["then"] or step["now"] for step in steps)
    return {
        "turn_id": str(envelope.pk),
        "same": same and all(side["then"] == side["now"] for side in (route, answer, status)),
        "route": route,
        "status": status,
        "answer": answer,
        "steps": steps,
        "notes": _unused(walk),
        "usage": _usage(walk),
    }


def _step(played: Played) -> dict[str, Any]:
    then = played.then
    before = _shown(then.output, then.mode) if then else {}
    after = _shown(played.wrote, played.mode)
    differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {
        "number": played.number,
        "then_number": then.number if then else None,
        "role": str(played.role),
        "how": played.how,
        "mode": played.mode or None,
        "degraded": played.degraded or None,
        "then": {name: before[name] for name in differing if name in before},
        "now": {name: after[name] for name in differing if name in after},
        "calls": _calls(played),
    }


def _shown(wrote: dict[str, Any], mode: str) -> dict[str, Any]:
    return wrote | ({"(mode)": mode} if mode else {})


def _calls(played: Played) -> list[dict[str, Any]]:
    recorded = played.calls
    if recorded is None:
        return []
    kinds = {"journal": recorded.found, "replayed": recorded.again, "asked": recorded.asked}
    return [_call(call, how) for how, calls in kinds.items() for call in calls]


def _call(call: ModelCall, how: str) -> dict[str, Any]:
    return {
        "how": how,
        "prompt": call.prompt,
        "prompt_hash": call.prompt_hash,
        "model": call.model,
        "outcome": call.outcome,
        "error": call.error or None,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cost": None if call.cost is None else dollars(call.cost),
        "seconds": call.seconds,
    }


def _usage(walk: Walk) -> dict[str, Any]:
    """What the replay asked just now, and what it found answered."""
    calls = [call for played in walk.played for call in _calls(played)]
    asked = [call for call in calls if call["how"] == "asked"]
    costs = [call["cost"] for call in asked]
    return {
        "asked": len(asked),
        "found": len(calls) - len(asked),
        "input_tokens": sum(call["input_tokens"] or 0 for call in asked),
        "output_tokens": sum(call["output_tokens"] or 0 for call in asked),
        "cost": None if None in costs else sum(costs),
    }


def _unused(walk: Walk) -> list[str]:
    """What was to be changed and played no part."""
    calls = [call for played in walk.played for call in _calls(played)]
    prompts = {call["prompt"] for call in calls}
    askers = {"expansion" if each.role == Role.SEARCH else each.role for each in walk.played}
    return [
        *(f"No call of this turn used the prompt {name}." for name in walk.changes.prompts
          if name not in prompts),
        *(f"{asker} had nothing to do in this turn." for asker in walk.changes.models
          if asker not in askers),
    ]  # fmt: skip
