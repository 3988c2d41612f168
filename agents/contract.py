"""Contract: what an agent reads and writes, and the view that holds it to that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agents.attributes import ADAPTERS, BOOKKEEPING, MEMORY, UNIVERSAL, WORK
from agents.errors import ContractError
from agents.llm.outcomes import ModelFailure
from agents.names import Role

if TYPE_CHECKING:
    # Needs the tables of the database, which are not there yet when agents are declared.
    from agents.llm.model import Model

Writes = dict[str, Any]

SYSTEM_FIELDS = frozenset(
    {
        "conversation_id",
        "message_id",
        "create_ts",
        "update_ts",
        "process_count",
        "total_processing_time",
        "sender_role",
        "deadline",
        "status",
        "target_role",
        "target_list",
        "result_list",
    }
)


class View:
    """What one agent sees of the payload: the attributes it declared to read, parsed.

    An attribute nobody has written yet reads as None.
    """

    def __init__(self, contract: "Contract", payload: Mapping[str, Any]) -> None:
        self._contract = contract
        self._values = {
            name: ADAPTERS[name].validate_python(payload[name])
            for name in contract.reads
            if payload.get(name) is not None
        }

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._contract.reads:
            raise ContractError(
                f"{self._contract.role} read {name!r}, which its contract does not declare "
                f"(reads: {', '.join(self._contract.reads)})"
            )
        return self._values.get(name)


@dataclass(frozen=True)
class Contract:
    """An agent's declaration: its role, the attributes it reads and those it may write."""

    role: Role
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.reads:
            if name not in ADAPTERS:
                raise ContractError(f"{self.role} declares to read {name!r}: no such attribute")
        for name in self.writes:
            if name in SYSTEM_FIELDS or name in BOOKKEEPING or name in MEMORY:
                raise ContractError(
                    f"{self.role} declares to write {name!r}: not an agent's to write"
                )
            if name not in WORK:
                raise ContractError(f"{self.role} declares to write {name!r}: no such attribute")

    def checked(self, writes: Writes) -> Writes:
        """Return `writes` as JSON values, or raise a ContractError that names the attribute."""
        if writes.get("needs_clarification") and "clarification_reason" not in writes:
            raise ContractError(f"{self.role} asked for clarification without a reason")
        return {name: self._json(name, value) for name, value in writes.items()}

    def _json(self, name: str, value: Any) -> Any:
        if name in SYSTEM_FIELDS or name in BOOKKEEPING:
            raise ContractError(f"{self.role} wrote {name!r}: only the framework may")
        if name not in self.writes and name not in UNIVERSAL:
            raise ContractError(
                f"{self.role} wrote {name!r}, which its contract does not declare "
                f"(writes: {', '.join(self.writes) or 'nothing'})"
            )
        try:
            parsed = ADAPTERS[name].validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]
            raise ContractError(
                f"{self.role} wrote {name!r} as {value!r:.80}: {problem['msg']}"
            ) from error
        return ADAPTERS[name].dump_python(parsed, mode="json")


Work = Callable[[View], Writes]
Thought = Callable[[View, "Model"], Writes]
Amends = Callable[[View, ModelFailure], Writes]


@dataclass(frozen=True)
class Done:
    """What an agent wrote (JSON values), and whether a model or its own rules did it."""

    writes: Writes
    mode: str = ""  # "model", "extractive", or empty for an agent that never asks a model
    degraded: str = ""  # why the rules did it although there is a model


@dataclass
class Agent:
    """A contract and the pure verbs that fulfil it: with a model, and without one."""

    contract: Contract
    work: Work | None = None
    thought: Thought | None = None
    amends: Amends | None = None

    def __call__(self, payload: Mapping[str, Any]) -> Writes:
        """Run on a payload without a model; return checked writes (JSON values)."""
        return self.perform(payload, None).writes

    def without_model(self, work: Work) -> Work:
        """Declare how the role works when there is no model, or it cannot be asked."""
        self.work = work
        return work

    def after_failure(self, amends: Amends) -> Amends:
        """Declare what the role does instead of that once its model was asked and failed."""
        self.amends = amends
        return amends

    def perform(self, payload: Mapping[str, Any], llm: "Model | None") -> Done:
        """Run on a payload, with the model if there is one and it can be asked."""
        view = View(self.contract, payload)
        degraded = ""
        if self.thought and llm:
            try:
                writes = self.contract.checked(self.thought(view, llm))
                return Done(writes, "model" if llm.number else "extractive")
            except ModelFailure as failure:
                degraded = f"{failure.outcome}: {failure}"
                llm.tokens.withdraw()
                if self.amends:
                    writes = self.contract.checked(self.amends(view, failure))
                    return Done(writes, "extractive", degraded)
        if self.work is None:
            raise ContractError(f"{self.contract.role} has no way to work without a model")
        mode = "extractive" if self.thought else ""
        return Done(self.contract.checked(self.work(view)), mode, degraded)


REGISTRY: dict[Role, Agent] = {}


def agent(
    role: Role, *, reads: tuple[str, ...], writes: tuple[str, ...]
) -> Callable[[Work], Agent]:
    """Declare the decorated function as the agent of `role` and register it."""

    def declare(work: Work) -> Agent:
        return _registered(Agent(Contract(role, reads, writes), work=work))

    return declare


def llm_agent(
    role: Role, *, reads: tuple[str, ...], writes: tuple[str, ...]
) -> Callable[[Thought], Agent]:
    """Declare the decorated function as the agent of `role`, which asks a model.

    What it does when no model can be asked is declared beside it: `@….without_model`.
    """

    def declare(thought: Thought) -> Agent:
        return _registered(Agent(Contract(role, reads, writes), thought=thought))

    return declare


def _registered(declared: Agent) -> Agent:
    role = declared.contract.role
    if role in REGISTRY:
        raise ContractError(f"{role} has two agents")
    REGISTRY[role] = declared
    return declared


def refuse_conflicts(together: tuple[Role, ...]) -> None:
    """Raise ContractError when two agents that run at the same time write the same attribute."""
    writers: dict[str, Role] = {}
    for role in together:
        for name in REGISTRY[role].contract.writes:
            if name in UNIVERSAL:
                continue
            if name in writers:
                raise ContractError(
                    f"{writers[name]} and {role} run in parallel and both write {name!r}"
                )
            writers[name] = role
