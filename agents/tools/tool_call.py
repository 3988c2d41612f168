"""Tool call: one call as it was understood, and an attempt at it: used, and written down."""

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError, connection, transaction
from pydantic_core import to_jsonable_python

from agents.errors import AgentError
from agents.models import ToolRun
from agents.steps.step_lease import retry_outage
from agents.tools import tool_journal
from agents.tools.tool import (
    Arguments,
    Caller,
    Effect,
    Finding,
    RefusedArguments,
    Tool,
    ToolOutcome,
)
from knowledge.postgres_text import storable_json

LONGEST_RESULT = 1_000_000  # characters of its JSON
AWAY = (OperationalError, InterfaceError)


class UnusableResult(AgentError):
    """A tool returned what cannot be kept."""


class ToolFailure(Exception):
    """What a tool raised is the cause of this."""


@dataclass(frozen=True)
class Call:
    """One call that is wanted: understood, or with what is wrong with it."""

    name: str
    given: Any  # the arguments as JSON; as the beginning of a text when they are none
    key: str
    where: Mapping[str, Any]  # the columns that say where it belongs
    tool: Tool | None = None
    arguments: Arguments | None = None
    effect_key: str = ""  # empty: it is not to change anything
    outcome: ToolOutcome = ToolOutcome.OK
    problem: str = ""

    def row(self, **values: Any) -> ToolRun:
        """Return its row, not stored."""
        columns = {**self.where, "outcome": ToolOutcome.OK, **values}
        return ToolRun(tool=self.name, arguments=self.given, key=self.key, **columns)

    def repeat(self, earlier: ToolRun) -> ToolRun:
        """Return its row, not stored, when another call had its effect before."""
        return self.row(result=earlier.result, repeats=earlier.repeats or earlier)


@dataclass(frozen=True)
class Attempt:
    """One attempt at a call, as its thread does it."""

    call: Call
    tool: Tool
    caller: Caller
    token: uuid.UUID | None  # of the step's lease
    number: int
    began: float  # the first attempt, by time.monotonic
    is_live: bool  # False: nothing is written down

    def __call__(self) -> ToolRun:
        """Use the tool; return the row, stored. Raises ToolFailure, RefusedArguments.

        When it is too late, there is a row of this key that says so. Then an effect here cannot be
        committed with a second one, and what else was done is not written down.
        """
        if self.tool.effect is Effect.HERE:
            return retry_outage(self._in_one_transaction)
        if self.tool.effect is Effect.ELSEWHERE:
            retry_outage(self._require_step)
        row = self._use()
        return tool_journal.store(row) if self.is_live else row

    def _require_step(self) -> None:
        """Raise LapsedError unless the step is still ours: elsewhere nothing can be taken back."""
        if self.token:
            with transaction.atomic():
                tool_journal.require_step(self.token)
            connection.close()

    def _in_one_transaction(self) -> ToolRun:
        with transaction.atomic(durable=True):
            tool_journal.limit(self.caller.seconds_left())
            earlier = tool_journal.effect(self.call.effect_key)
            if earlier is None:
                row = self._use()
                row.save(force_insert=True)
                tool_journal.as_stored(row)
                if self.token:
                    tool_journal.require_step(self.token)
                return row
        return tool_journal.store(self.call.repeat(earlier))

    def _use(self) -> ToolRun:
        """Use the tool; return the row, not stored."""
        try:
            result = self.tool.function(self.call.arguments, self.caller)
            values = _result_values(result)
        except RefusedArguments:
            raise
        except BaseException as error:
            if self.tool.effect is Effect.HERE and isinstance(error, AWAY):
                raise
            raise ToolFailure from error
        return self.call.row(
            effect_key=self.call.effect_key or None,
            attempts=self.number,
            seconds=time.monotonic() - self.began,
            **values,
        )


def _result_values(result: Any) -> dict[str, Any]:
    """Return what a row says of a result. Raises UnusableResult, PydanticSerializationError."""
    finding = result if isinstance(result, Finding) else Finding(result)
    value = storable_json(to_jsonable_python(finding.value, inf_nan_mode="null"))
    if (size := len(json.dumps(value))) > LONGEST_RESULT:
        raise UnusableResult(f"The result has {size:,} characters; {LONGEST_RESULT:,} may be.")
    gain = ToolRun.Gain.EMPTY if finding.is_empty else ToolRun.Gain.SOMETHING
    return {
        "result": value,
        "gain": ToolRun.Gain.NOTHING_NEW if finding.adds_nothing else gain,
    }
