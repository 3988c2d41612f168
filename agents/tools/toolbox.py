"""Toolbox: has the tools called that a role wants at a step, each effect once, and writes it down.

A call that is written down is found again when the step is done again. What has an effect here does
it in the transaction that writes it down, and only while the step is ours. No transaction and no
connection is held while calls are waited for, but by the call that changes something.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection
from django.utils.timezone import now

from agents.errors import AgentError
from agents.llm.outcomes import ModelFailure
from agents.llm.requests import ToolCall
from agents.llm.schema import parse
from agents.models import Envelope, ToolRun
from agents.steps import events, faults
from agents.steps.records import Claim
from agents.steps.step_lease import retry_outage
from agents.tools import tool_journal
from agents.tools.flight import ADRIFT, Flight, TooLate, landed
from agents.tools.tool import (
    TOOLS,
    Arguments,
    Caller,
    Effect,
    RefusedArguments,
    Tool,
    ToolOutcome,
    tools_of,
)
from agents.tools.tool_call import Attempt, Call, ToolFailure
from knowledge.postgres_text import storable

LONGEST_ARGUMENTS = 20_000  # bytes
# Of what cannot be understood, so many characters are kept; the reply of the model has it whole.
SHOWN = 500
MOST_CALLS = 8  # of one reply
AT_ONCE = 4
RETRY_SECONDS = 0.3
sleep: Callable[[float], None] = time.sleep


class ToolTimeout(AgentError):
    """A tool was not done in its time."""


@dataclass
class Toolbox:
    """The tools of the role that is at work on one step of a turn."""

    envelope_id: uuid.UUID
    step_number: int
    caller: Caller
    attempt: int = 1
    stream: str = ""  # where watchers are told; empty: nobody watches
    token: uuid.UUID | None = None  # of the step's lease
    deadline: datetime | None = None
    # False: a replay, which finds what was done, looks things up, and changes and keeps nothing.
    is_live: bool = True
    # What the steps of a replay before this one had tools do, which nobody writes down.
    replayed: Sequence[ToolRun] = ()
    number: int = 0  # of the last call
    runs: list[ToolRun] = field(default_factory=list)  # of this attempt, in order
    _times: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, claim: Claim) -> "Toolbox":
        """Return the toolbox for a claimed step."""
        return cls(
            claim.envelope_id,
            claim.number,
            caller(claim.role, claim.envelope_id, claim.payload),
            claim.attempt,
            claim.stream,
            claim.token,
            claim.deadline,
        )

    @property
    def tools(self) -> list[Tool]:
        """The tools that the role may have called."""
        return tools_of(self.caller.role)

    def call(self, name: str, **arguments: Any) -> ToolRun:
        """Have one tool called, by rules and not by a model; return what came of it."""
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        (run,) = self.call_all([ToolCall("", name, text)])
        return run

    def call_all(
        self, wanted: Sequence[ToolCall], *, round_number: int = 0, model_call: int | None = None
    ) -> list[ToolRun]:
        """Have tools called; return what came of each, in the order they were wanted.

        Those without effect run at the same time, one with an effect after all before it. Raises
        LapsedError when the step is not ours any more, and errors of a database that stays away.
        """
        place = {"round": round_number, "model_call_id": model_call}
        calls = [self._understood(each, place) for each in wanted]
        calls[MOST_CALLS:] = map(_too_many, calls[MOST_CALLS:])
        before = self._rows_before(calls)
        runs: list[ToolRun] = []
        for group in _groups(calls):
            runs += self._done(group, before)
        self.runs += runs
        return runs

    def effects(self) -> list[ToolRun]:
        """Return what the turn has changed so far, whichever step or attempt did it."""
        done = ToolRun.objects.filter(envelope=self.envelope_id, effect_key__isnull=False)
        try:
            return retry_outage(lambda: list(done.all()))
        finally:
            connection.close()

    def trajectory(self) -> list[dict[str, Any]]:
        """Return the calls of this attempt as watchers see them."""
        return [
            {
                "round": run.round,
                "call": run.number,
                "tool": run.tool if run.tool in TOOLS else "",
                **_told(run),
            }
            for run in self.runs
        ]

    def _understood(self, wanted: ToolCall, place: Mapping[str, Any]) -> Call:
        """Return the call with its keys, or with what is wrong with it."""
        self.number += 1
        step = {"envelope_id": self.envelope_id, "step_number": self.step_number}
        where = {**step, "role": self.caller.role, "number": self.number, **place}
        name = storable(wanted.name)[:64]
        call = Call(name, storable(wanted.arguments[:SHOWN]), self._key(wanted), where)
        tool = TOOLS.get(wanted.name)
        if tool is None or self.caller.role not in tool.roles:
            known = ", ".join(each.name for each in self.tools) or "none"
            problem = f"There is no tool {name!r} here; there are: {known}."
            return replace(call, outcome=ToolOutcome.HALLUCINATION, problem=problem)
        call = replace(call, tool=tool)
        try:
            arguments = _arguments(wanted.arguments, tool)
        except ModelFailure as failure:
            return replace(call, outcome=ToolOutcome.VALIDATION, problem=str(failure))
        except RefusedArguments as refusal:
            return replace(call, outcome=ToolOutcome.VALIDATION, problem=str(refusal))
        given = arguments.model_dump(mode="json")
        effect = self._effect_key(tool, given)
        return replace(call, arguments=arguments, given=given, effect_key=effect)

    def _key(self, wanted: ToolCall) -> str:
        """Return what tells the call apart from all others, and finds it at the next attempt."""
        digest = tool_journal.key_of(wanted.name, wanted.arguments)
        self._times[digest] += 1
        return tool_journal.key_of(self.envelope_id, self.step_number, digest, self._times[digest])

    def _effect_key(self, tool: Tool, given: Mapping[str, Any]) -> str:
        if tool.effect is Effect.NONE:
            return ""
        identity = {name: given[name] for name in tool.identity or given}
        return tool_journal.key_of(self.envelope_id, tool.name, identity)

    def _rows_before(self, calls: Sequence[Call]) -> dict[str, ToolRun]:
        """Return the rows that are there already, by their keys."""
        effects = [each.effect_key for each in calls if each.effect_key]
        rows = tool_journal.find([each.key for each in calls], effects)
        return {row.effect_key: row for row in rows if row.effect_key} | {
            row.key: row for row in rows
        }

    def _done(self, group: Sequence[Call], before: dict[str, ToolRun]) -> list[ToolRun]:
        """Begin all calls of a group, then wait for each."""
        for call in group:
            self._tell("tool_call_start", call)
        landings = [self._begun(call, before) for call in group]
        runs = []
        for call, run in zip(group, _landed_together(landings), strict=True):
            if call.effect_key and run.outcome == ToolOutcome.OK:
                before.setdefault(call.effect_key, run)
            self._tell("tool_call_complete", call, **_told(run))
            runs.append(run)
        return runs

    def _begun(self, call: Call, before: Mapping[str, ToolRun]) -> Callable[[], ToolRun]:
        """Begin a call that was not made before; return what to do for what came of it."""
        if earlier := before.get(call.key) or before.get(call.effect_key):
            return partial(self._again, call, earlier)
        if call.tool is None or call.problem:
            return partial(self._failed, call, call.outcome, call.problem)
        if call.effect_key and not self.is_live:
            problem = "This is a replay: it changes nothing."
            return partial(self._failed, call, ToolOutcome.EXECUTION, problem)
        began = time.monotonic()
        return partial(
            self._landed, call, call.tool, self._flight(call, call.tool, began, 1), began
        )

    def _again(self, call: Call, earlier: ToolRun) -> ToolRun:
        """Return the row of this very call, or one that says that its effect was had before."""
        return earlier if earlier.key == call.key else self._stored(call.repeat(earlier))

    def _flight(self, call: Call, tool: Tool, began: float, attempt: int) -> Flight[ToolRun] | None:
        """Begin an attempt; None when that is of no use."""
        left = (self.deadline - now()).total_seconds() if self.deadline else tool.seconds
        seconds = min(tool.seconds, left)
        if seconds <= 0 or ADRIFT.is_full(tool.name):
            return None
        who = replace(self.caller, key=call.effect_key, until=time.monotonic() + seconds)
        act = Attempt(call, tool, who, self.token, attempt, began, is_live=self.is_live)
        return Flight(tool.name, act, seconds)

    def _landed(
        self, call: Call, tool: Tool, flight: Flight[ToolRun] | None, began: float
    ) -> ToolRun:
        """Return what came of a call, after as many attempts as its tool allows."""
        attempt = 1
        while True:
            try:
                return landed(flight)
            except RefusedArguments as refusal:
                return self._failed(call, ToolOutcome.VALIDATION, str(refusal), attempts=attempt)
            except TooLate:
                outcome = ToolOutcome.TIMEOUT
                error: Any = ToolTimeout(f"{tool.name} was not done after {tool.seconds:g} s.")
            except ToolFailure as failure:
                error = failure.__cause__
                is_late = isinstance(error, TimeoutError)
                outcome = ToolOutcome.TIMEOUT if is_late else ToolOutcome.EXECUTION
            if flight is None or attempt > tool.retries:
                break
            sleep(RETRY_SECONDS * attempt)
            attempt += 1
            flight = self._flight(call, tool, began, attempt)
        error_id = self._fault(error)
        return self._failed(
            call,
            outcome,
            _sentence(tool, outcome, error_id),
            error_id=error_id,
            attempts=attempt,
            seconds=time.monotonic() - began,
        )

    def _fault(self, error: BaseException) -> str:
        """Store what a tool raised, for the operator; return its id."""
        if not self.is_live:
            return ""
        record = partial(faults.record, error, role=self.caller.role, step=self.step_number)
        return retry_outage(partial(record, envelope=Envelope(pk=self.envelope_id)))

    def _failed(self, call: Call, outcome: ToolOutcome, problem: str, **values: Any) -> ToolRun:
        """Write down that a call came to nothing; return that, or what it came to after all."""
        return self._stored(call.row(outcome=outcome, error=storable(problem), **values))

    def _stored(self, row: ToolRun) -> ToolRun:
        try:
            return tool_journal.store(row) if self.is_live else row
        finally:
            connection.close()

    def _tell(self, event: str, call: Call, **data: Any) -> None:
        """Tell watchers: no arguments, no results, and no name that a model made up."""
        if self.stream:
            place: dict[str, Any] = {
                "role": self.caller.role,
                "step": self.step_number,
                "attempt": self.attempt,
            }
            place |= {"round": call.where["round"], "call": call.where["number"]}
            name = call.tool.name if call.tool else ""
            events.publish(self.stream, event, **place, tool=name, **data)


def caller(role: str, turn: uuid.UUID, payload: Mapping[str, Any]) -> Caller:
    """Return for whom a role works: what the turn was begun with, which no agent can write."""
    return Caller(
        role=str(role),
        turn_id=str(turn),
        owner=payload.get("owner", ""),
        user_id=payload.get("user_id", ""),
        collections=tuple(payload.get("collections", ())),
        documents=tuple(payload.get("documents", ())),
        languages=tuple(payload.get("languages", ())),
        audience=payload.get("audience", ""),
    )


def _told(run: ToolRun) -> dict[str, Any]:
    """Return what watchers are told of what came of a call."""
    outcome = "ok" if run.outcome == ToolOutcome.OK else "failed"
    return {"outcome": outcome, "seconds": round(run.seconds, 3)}


def _groups(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Yield the calls in order, those together that can be made at the same time."""
    group: list[Call] = []
    for call in calls:
        if group and (call.effect_key or len(group) == AT_ONCE):
            yield group
            group = []
        group.append(call)
        if call.effect_key:
            yield group
            group = []
    if group:
        yield group


def _landed_together(landings: Sequence[Callable[[], ToolRun]]) -> Iterator[ToolRun]:
    """Yield what came of calls, in order; their further attempts run at the same time, too."""
    if len(landings) == 1:
        yield landings[0]()
        return
    with ThreadPoolExecutor(len(landings), thread_name_prefix="tools") as pool:
        yield from pool.map(lambda land: land(), landings)


def _too_many(call: Call) -> Call:
    problem = f"Not called: a reply may call {MOST_CALLS} tools. Call it in your next reply."
    return replace(call, outcome=ToolOutcome.VALIDATION, problem=problem, effect_key="")


def _arguments(text: str, tool: Tool) -> Arguments:
    """Return the arguments in their shape. Raises ModelFailure, RefusedArguments."""
    if (size := len(text.encode(errors="replace"))) > LONGEST_ARGUMENTS:
        raise RefusedArguments(
            f"The arguments have {size:,} bytes; at most {LONGEST_ARGUMENTS:,} may be given."
        )
    return parse(text.strip() or "{}", tool.arguments, what="what you gave")


def _sentence(tool: Tool, outcome: ToolOutcome, error_id: str) -> str:
    """Return what a model is told of a failure that is not its own."""
    what = "was not done in time" if outcome is ToolOutcome.TIMEOUT else "failed"
    sentences = {
        Effect.NONE: "",
        Effect.HERE: " Nothing was changed.",
        Effect.ELSEWHERE: (
            " Whether it had its effect is not known; called again with exactly these arguments, "
            "it has it once."
        ),
    }
    return f"{tool.name} {what}, not because of its arguments ({error_id}).{sentences[tool.effect]}"


_current: ContextVar[Toolbox | None] = ContextVar("toolbox", default=None)


@contextmanager
def lend(toolbox: Toolbox) -> Iterator[Toolbox]:
    """Have the toolbox at hand for the agent that works within the block."""
    reset = _current.set(toolbox)
    try:
        yield toolbox
    finally:
        _current.reset(reset)


def unwritten() -> list[ToolRun]:
    """Return what the calls of a replay brought by now; nothing where calls are written down."""
    toolbox = _current.get()
    return [*toolbox.replayed, *toolbox.runs] if toolbox and not toolbox.is_live else []


def at_hand() -> Toolbox:
    """Return the toolbox of the step that this thread works on. Raises LookupError."""
    toolbox = _current.get()
    if toolbox is None:
        raise LookupError("Tools are called by an agent at work on a step, and here is none.")
    return toolbox
