"""Replay: a stored turn run once more beside the old one, which stays as it is."""

import json
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.contract import REGISTRY, Result
from agents.errors import AgentError
from agents.llm import journal
from agents.llm.journal import Entry, Subject
from agents.llm.model import Model
from agents.llm.outcomes import REPLIED, UNHEARD, ModelFailure, Outcome
from agents.llm.requests import Choice, Reply
from agents.models import Envelope, ModelCall, Step, ToolRun
from agents.names import MODEL_ASKERS, Role
from agents.routing import decide
from agents.steps import model_context
from agents.steps.records import (
    Payload,
    first_payload,
    payload_after_agent,
    payload_after_decision,
    payloads_before,
)
from agents.tools import toolbox
from agents.tools.toolbox import Toolbox
from agents.trace.usage import REPLAY, calls_of, dollars
from agents.words import ENGLISH
from knowledge.providers import parse_model_name, provider_names
from prompts.prompt import DECLARED
from prompts.texts import PromptError, parse, replaced

# How a step of a replay came about: taken as it was written then, or done again.
STORED, WORKED = "stored", "worked"


class UnusableChange(AgentError):
    """What is to be changed cannot be."""


@dataclass(frozen=True)
class Changes:
    """Other models by asker, and other prompt files by the name of the prompt."""

    models: Mapping[str, str] = field(default_factory=dict)  # {"response": "model@provider"}
    prompts: Mapping[str, str] = field(default_factory=dict)  # {"response": the file's text}


def changes(models: Sequence[str], prompts: Sequence[str]) -> Changes:
    """Return what ROLE=MODEL and PROMPT=FILE ask for. Raises UnusableChange."""
    return Changes(dict(map(_model_change, models)), dict(map(_prompt_change, prompts)))


def _model_change(option: str) -> tuple[str, str]:
    asker, _, model = option.partition("=")
    if asker not in MODEL_ASKERS:
        raise UnusableChange(
            f"--model {option!r}: {asker!r} asks no model; these do: {', '.join(MODEL_ASKERS)}."
        )
    name, provider = parse_model_name(model)
    if not name or provider not in settings.PROVIDERS:
        raise UnusableChange(
            f"--model {option!r}: write {asker}=model@provider, with one of these providers: "
            f"{provider_names()}."
        )
    return asker, f"{name}@{provider}"


def _prompt_change(option: str) -> tuple[str, str]:
    name, _, file = option.partition("=")
    if name not in DECLARED:
        raise UnusableChange(
            f"--prompt {option!r}: there is no prompt {name!r}; there are: "
            f"{', '.join(sorted(DECLARED))}."
        )
    try:
        content = Path(file).read_text(encoding="utf-8")
        text = parse(name, content)
    except (OSError, UnicodeDecodeError, PromptError) as error:
        raise UnusableChange(f"--prompt {option!r}: {error}") from error
    if differing := DECLARED[name].variables ^ set(text.kinds):
        raise UnusableChange(
            f"--prompt {option!r}: the file and Docent differ in the variables: "
            f"{', '.join(sorted(differing))}."
        )
    return name, content


@dataclass
class StepJournal:
    """The journal of one step of a replay: where its model calls find their replies."""

    turn: uuid.UUID
    step: int | None  # number of the step that did this work then
    turn_calls: Sequence[ModelCall]  # every call of the turn, in order
    found: list[ModelCall] = field(default_factory=list)  # replies from then
    repeated: list[ModelCall] = field(default_factory=list)  # replies that an earlier replay got
    asked: list[ModelCall] = field(default_factory=list)  # really asked, just now

    def find(self, entry: Entry) -> ModelCall | None:
        """Return the call that was answered then, or in an earlier replay.

        Raises the ModelFailure of a call that failed then: it would be no replay otherwise.
        """
        equal = [call for call in self.turn_calls if call.request_hash == entry.digest]
        of_step = [call for call in equal if call.step_number == self.step]
        usable = [call for call in equal if call.outcome in REPLIED]
        if call := next(reversed(of_step or usable), None):
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
            self.repeated.append(call)
        return call

    def begin(self, entry: Entry) -> ModelCall:
        """Keep that a question is asked that nobody asked then."""
        self.asked.append(journal.begin(entry))
        return self.asked[-1]

    def store_reply(
        self, call: ModelCall, reply: Reply, attempts: list[dict[str, Any]]
    ) -> ModelCall:
        """Keep the reply to such a question."""
        return journal.store_reply(call, reply, attempts)

    def store_failure(
        self, call: ModelCall, failure: ModelFailure, attempts: list[dict[str, Any]]
    ) -> ModelCall:
        """Keep that such a question was not answered."""
        return journal.store_failure(call, failure, attempts)

    def amend(self, pk: int, failure: ModelFailure) -> None:
        """Note that a reply is unusable, unless it is one from then: that is history."""
        if pk in {call.pk for call in self.asked}:
            journal.amend(pk, failure)

    def reply_of(self, call: ModelCall) -> Reply:
        """Return the reply of a stored call."""
        return journal.reply_of(call)


@dataclass(frozen=True)
class ReplayedStep:
    """One step of the replay, beside the step that did this work then (None: nobody did)."""

    number: int
    role: Role
    original: Step | None
    result: Result
    how: str = WORKED  # or STORED
    journal: StepJournal | None = None


@dataclass
class Replay:
    """One replay on its way."""

    envelope: Envelope
    changes: Changes
    since: int = 1  # number of the first step that works; those before are taken as they were
    steps: list[ReplayedStep] = field(default_factory=list)
    answer: str = ""
    status: str = ""  # empty: it went round too often to end
    _closing: str = ""  # what the turn ends with when that was no agent's

    def __post_init__(self) -> None:
        self.originals = list(self.envelope.steps.all())
        if self.since > max((step.number for step in self.originals), default=0):
            raise UnusableChange(f"--from {self.since}: the turn has {len(self.originals)} steps.")
        payloads = payloads_before(self.envelope, self.originals)
        numbers = [step.number for step in self.originals]
        self.payloads = dict(zip(numbers, payloads, strict=True))
        self.calls: list[ModelCall] = list(calls_of(self.envelope.pk).exclude(outcome__in=UNHEARD))
        self._runs: list[ToolRun] = []
        self._waiting: dict[Role, list[Step]] = defaultdict(list)
        for step in self.originals:
            self._waiting[Role(step.role)].append(step)

    def run(self) -> None:
        """Go from the turn's memory to its end. Raises AgentError and KnowledgeError of agents."""
        with ExitStack() as stack:
            for name, content in self.changes.prompts.items():
                stack.enter_context(replaced(name, content))
            payload = first_payload(self.envelope)
            while len(self.steps) < settings.MAX_PROCESS_COUNT:
                decision = self._decide(payload)
                payload = payload_after_decision(payload, decision)
                if not decision["to"]:
                    break
                for step in [self._perform(Role(role), payload) for role in decision["to"]]:
                    payload = payload_after_agent(payload, step.role, step.result.writes)
        self.answer = self._closing or str(payload.get("response", ""))

    def _decide(self, payload: Payload) -> dict[str, Any]:
        """Return what the table decides now, as it is stored; before `since`, what it did."""
        original = self._next_original(Role.MANAGER)
        if original and self._is_kept(original):
            record: dict[str, Any] = original.output
            self._add(Role.MANAGER, original, Result(record), STORED)
            self._closing = self.envelope.payload.get("response", "") if record["ends"] else ""
        else:
            decision = decide(payload)
            record = json.loads(json.dumps(decision.record()))
            self._add(Role.MANAGER, original, Result(record))
            if decision.phrase:
                self._closing = decision.phrase.in_language(payload.get("language", ENGLISH))
        self.status = record["ends"] or ""
        return record

    def _perform(self, role: Role, payload: Payload) -> ReplayedStep:
        """Let the agent work, or take what it wrote then where nothing else could come of it."""
        original = self._next_original(role)
        number = original.number if original else None
        calls = [call for call in self.calls if original and call.step_number == number]
        if original and (self._is_kept(original) or self._is_settled(original, payload, calls)):
            result = Result(original.output, original.mode, original.degraded)
            return self._add(role, original, result, STORED)
        step_journal = StepJournal(self.envelope.pk, number, self.calls)
        llm = self._model(role, payload, original, calls, step_journal)
        # Of a step that nobody did then, no tool has done anything either.
        found = Toolbox(
            self.envelope.pk,
            number or 0,
            toolbox.caller(role, self.envelope.pk, payload),
            is_live=False,
            replayed=self._runs,
        )
        with model_context.lend(llm, role) as own, toolbox.lend(found):
            result = REGISTRY[role].perform(payload, own)
        self._runs = [*self._runs, *found.runs]
        return self._add(role, original, result, step_journal=step_journal)

    def _is_kept(self, original: Step) -> bool:
        return original.number < self.since and original.status == Step.Status.DONE

    def _is_settled(self, original: Step, payload: Payload, calls: list[ModelCall]) -> bool:
        """Whether a step cannot come to anything else: it reads the same and asks nobody."""
        role = Role(original.role)
        if original.status != Step.Status.DONE:
            return False
        if model_context.asker_of(role) in self.changes.models:
            return False
        if any(call.prompt in self.changes.prompts for call in calls):
            return False
        agent = REGISTRY[role]
        if agent.model_work and calls:
            return False
        before = self.payloads[original.number]
        return all(payload.get(name) == before.get(name) for name in agent.contract.reads)

    def _model(
        self,
        role: Role,
        payload: Payload,
        original: Step | None,
        calls: list[ModelCall],
        step_journal: StepJournal,
    ) -> Model | None:
        """Return the model that was asked then, or the one it is changed to, or none."""
        asker = model_context.asker_of(role)
        choice = model_context.choice_of(asker, payload)
        if calls:
            choice = _choice_of(calls, choice)
        elif original:
            choice = replace(choice, model="", second="")
        if asker in self.changes.models:
            choice = replace(choice, model=self.changes.models[asker], second="")
        if not choice.model:
            return None
        subject = _subject(self.envelope.pk, asker, self._number)
        return Model(choice, subject, journal=step_journal)

    @property
    def _number(self) -> int:
        return len(self.steps) + 1

    def _next_original(self, role: Role) -> Step | None:
        """Return the step of then that stands beside the next one: the same role's next."""
        waiting = self._waiting[role]
        return waiting.pop(0) if waiting else None

    def _add(
        self,
        role: Role,
        original: Step | None,
        result: Result,
        how: str = WORKED,
        step_journal: StepJournal | None = None,
    ) -> ReplayedStep:
        step = ReplayedStep(self._number, role, original, result, how, step_journal)
        self.steps.append(step)
        return step


def _subject(turn: uuid.UUID, role: str, number: int) -> Subject:
    """Return what the calls of one step of a replay are made for.

    Nobody but another replay is ever served from them: they belong to no asker. Another replay
    may have asked for the same step already.
    """
    return Subject(
        name=f"{REPLAY}{turn}/{number}",
        role=role,
        owner=REPLAY.rstrip("/"),
        envelope_id=turn,
        step_number=number,
    )


def _choice_of(calls: list[ModelCall], choice: Choice) -> Choice:
    """Return the choice that made these calls: models in their order, and the bounds of a reply."""
    first, *others = dict.fromkeys(call.request["model"] for call in calls)
    request = calls[0].request
    return replace(
        choice,
        model=first,
        second=others[0] if others else "",
        max_tokens=request["max_tokens"],
        temperature=request["temperature"],
    )


def comparison(replay: Replay) -> dict[str, Any]:
    """Return both sides of a replay that has run, step by step, and whether they are the same.

    A step's `then` and `now` hold only what differs. `how` is "stored" for a step taken as it was
    written then. A call's `how` is "journal" (answered then), "replayed" (asked in an earlier
    replay) or "asked" (just now, and paid for). Cost in US dollars; None: some of it is not known.
    """
    envelope = replay.envelope
    steps = [_step(step) for step in replay.steps]
    route = {
        "then": [step.role for step in replay.originals if step.role != Role.MANAGER],
        "now": [str(step.role) for step in replay.steps if step.role != Role.MANAGER],
    }
    answer = {"then": str(envelope.payload.get("response", "")), "now": replay.answer}
    status = {"then": envelope.status, "now": replay.status}
    same = not any(step["then"] or step["now"] for step in steps)
    return {
        "turn_id": str(envelope.pk),
        "same": same and all(side["then"] == side["now"] for side in (route, answer, status)),
        "route": route,
        "status": status,
        "answer": answer,
        "steps": steps,
        "notes": _unused(replay),
        "usage": _usage(replay),
    }


def _step(step: ReplayedStep) -> dict[str, Any]:
    original, result = step.original, step.result
    then = _values(original.output, original.mode) if original else {}
    now = _values(result.writes, result.mode)
    differing = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return {
        "number": step.number,
        "then_number": original.number if original else None,
        "role": str(step.role),
        "how": step.how,
        "mode": result.mode or None,
        "degraded": result.degraded or None,
        "then": {name: then[name] for name in differing if name in then},
        "now": {name: now[name] for name in differing if name in now},
        "calls": _calls(step),
    }


def _values(writes: dict[str, Any], mode: str) -> dict[str, Any]:
    return writes | ({"(mode)": mode} if mode else {})


def _calls(step: ReplayedStep) -> list[dict[str, Any]]:
    if step.journal is None:
        return []
    kinds = {
        "journal": step.journal.found,
        "replayed": step.journal.repeated,
        "asked": step.journal.asked,
    }
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


def _usage(replay: Replay) -> dict[str, Any]:
    """What the replay asked just now, and what it found answered."""
    calls = [call for step in replay.steps for call in _calls(step)]
    asked = [call for call in calls if call["how"] == "asked"]
    costs = [call["cost"] for call in asked]
    return {
        "asked": len(asked),
        "found": len(calls) - len(asked),
        "input_tokens": sum(call["input_tokens"] or 0 for call in asked),
        "output_tokens": sum(call["output_tokens"] or 0 for call in asked),
        "cost": None if None in costs else sum(costs),
    }


def _unused(replay: Replay) -> list[str]:
    """What was to be changed and played no part."""
    prompts = {call["prompt"] for step in replay.steps for call in _calls(step)}
    askers = {model_context.asker_of(step.role) for step in replay.steps}
    return [
        *(f"No call of this turn used the prompt {name}." for name in replay.changes.prompts
          if name not in prompts),
        *(f"{asker} had nothing to do in this turn." for asker in replay.changes.models
          if asker not in askers),
    ]  # fmt: skip
