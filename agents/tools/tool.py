"""Tool: a function that a model may have called, with the shape of its arguments and who may."""

import inspect
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict

from agents.errors import AgentError, ContractError
from agents.llm.schema import schema_of
from agents.names import Role

# As OpenAI's chat API wants names of functions.
NAME = re.compile(r"^[a-z][a-z0-9_]{0,63}\Z")
NO_LIMIT = float("inf")
# What a model is shown of a result: its beginning and its end.
LONGEST_OBSERVATION = 1500  # characters
BEGINNING, END = 0.6, 0.35


class ToolOutcome(StrEnum):
    """What one call of a tool came to. Everything but `OK` has a sentence for the model."""

    OK = "ok"
    HALLUCINATION = "hallucination"  # there is no such tool, or not for this role
    VALIDATION = "validation"  # the arguments are not what the tool takes
    EXECUTION = "execution"  # the tool raised something
    TIMEOUT = "timeout"


class Effect(StrEnum):
    """What a tool changes, and so how it is seen to that this happens once."""

    NONE = "none"
    # In Docent's own database: done in the transaction that records the call.
    HERE = "here"
    # In another system, which has to know the call by `Caller.key`: it may be asked twice.
    ELSEWHERE = "elsewhere"


class Arguments(BaseModel):
    """What a model may give to a tool; what is not declared is refused, not overlooked."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RefusedArguments(AgentError):
    """What a tool raises that cannot work with its arguments. The model reads the message."""


@dataclass(frozen=True)
class Caller:
    """For whom and by when a tool works. From the turn's key or session, never from its text."""

    role: str
    owner: str = ""
    user_id: str = ""
    turn_id: str = ""
    collections: tuple[str, ...] = ()  # that may be searched; empty: every one
    documents: tuple[str, ...] = ()  # ids of the only ones; empty: all of the collections
    languages: tuple[str, ...] = ()
    audience: str = ""
    # The same whenever this call is made again, and of no other: for systems that do once what
    # comes with the same key. Empty for tools without effect.
    key: str = ""
    until: float = NO_LIMIT  # by time.monotonic

    def seconds_left(self) -> float:
        """Return how long the result is still waited for; a time limit for what the tool asks."""
        return max(0.0, self.until - time.monotonic())


@dataclass(frozen=True)
class Finding:
    """A result of a tool that says so when it is of little use. A loop of tools ends earlier."""

    value: Any
    is_empty: bool = False  # nothing was found: looking elsewhere may help
    adds_nothing: bool = False  # there is nothing more to be had


Function = Callable[[Any, Caller], Any]
Told = Callable[[Any], str]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class Tool:
    """One tool: its function, what it is given, and what may be done with it."""

    name: str
    function: Function
    arguments: type[Arguments]
    roles: tuple[Role, ...]
    seconds: float
    retries: int
    critical: bool
    where: Callable[[], Effect]
    identity: tuple[str, ...]
    told: Told

    @property
    def effect(self) -> Effect:
        """What it changes, as things are set now."""
        return self.where()

    @property
    def description(self) -> str:
        """What the docstring says, to whoever chooses a tool."""
        return inspect.getdoc(self.function) or ""

    def schema(self) -> dict[str, Any]:
        """Return the tool as OpenAI's chat API has it; strict, so every argument is required."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": schema_of(self.arguments),
            "strict": True,
        }
        return {"type": "function", "function": function}


TOOLS: dict[str, Tool] = {}


def tool(
    *,
    roles: Sequence[str],
    timeout: float = 10.0,
    retries: int = 0,
    critical: bool = False,
    effect: Effect | Callable[[], Effect] = Effect.NONE,
    identity: Sequence[str] = (),
    told: Told | None = None,
) -> Callable[[F], F]:
    """Declare the decorated function of (arguments, caller) as a tool under its own name.

    It may take `timeout` seconds for each attempt, of which there are `retries` more after one that
    failed. The failure of a `critical` one is told to the user. What has an `effect` does it once
    in a turn for equal arguments; equal in those of `identity`, if any are named. Where a setting
    decides what that is, `effect` is a function that says so. `told` writes down for a model what
    the tool returned, as JSON values; without it, they are written as JSON, and a long text keeps
    its two ends. Raises ContractError for what cannot
    be a tool, which stops the start.
    """

    def declare(function: F) -> F:
        name = function.__name__
        shape = _shape(name, function)
        declared = Tool(
            name,
            function,
            shape,
            tuple(_role(name, role) for role in roles),
            timeout,
            retries,
            critical,
            (lambda: effect) if isinstance(effect, Effect) else effect,
            tuple(identity),
            told or as_json,
        )
        _check(declared)
        if name in TOOLS:
            raise ContractError(f"There are two tools {name}: {_place(TOOLS[name].function)} "
                                f"and {_place(function)}.")  # fmt: skip
        TOOLS[name] = declared
        return function

    return declare


def as_json(result: Any) -> str:
    """Return what a model is told of a result: its JSON, of a longer one its two ends."""
    return excerpt(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))


def excerpt(text: str, most: int = LONGEST_OBSERVATION) -> str:
    """Return a text of at most so many characters whole, of a longer one its two ends."""
    if len(text) <= most:
        return text
    head, tail = round(BEGINNING * most), round(END * most)
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


def tools_of(role: str) -> list[Tool]:
    """Return the tools that a role may have called, in the order they were declared."""
    return [each for each in TOOLS.values() if role in each.roles]


def _place(function: Function) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _role(name: str, role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        known = ", ".join(Role)
        raise ContractError(
            f"The tool {name} names the role {str(role)!r}; there are: {known}."
        ) from None


def _shape(name: str, function: Function) -> type[Arguments]:
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters)
    shape = hints.get(parameters[0]) if len(parameters) == 2 else None
    if not (isinstance(shape, type) and issubclass(shape, Arguments)):
        raise ContractError(
            f"The tool {name} must take its arguments, as a class derived from Arguments, and "
            f"the caller; it takes {inspect.signature(function)}."
        )
    return shape


def _check(declared: Tool) -> None:
    """Raise ContractError for a declaration that makes no sense."""
    name = declared.name
    if not NAME.match(name):
        raise ContractError(f"{name!r} cannot be the name of a tool: write small_letters, 64.")
    if not declared.description.strip():
        raise ContractError(f"The tool {name} has no docstring: models choose it by that.")
    if not declared.roles:
        raise ContractError(f"The tool {name} names no role that may call it.")
    if declared.seconds <= 0 or declared.retries < 0:
        raise ContractError(f"The tool {name} must have a timeout above 0 and retries from 0.")
    unknown = set(declared.identity) - set(declared.arguments.model_fields)
    if unknown:
        raise ContractError(
            f"The tool {name} is told apart by {sorted(unknown)}, which it is not given."
        )
    if declared.identity and declared.effect is Effect.NONE:
        raise ContractError(f"The tool {name} has no effect, so it needs no identity.")
