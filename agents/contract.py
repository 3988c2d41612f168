"""Contract: what an agent reads and writes, and the view that holds it to that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.attributes import ADAPTERS, BOOKKEEPING, MEMORY, UNIVERSAL, WORK
from agents.errors import ContractError
from agents.names import Role

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


@dataclass(frozen=True)
class Agent:
    """A contract and the pure verb that fulfils it."""

    contract: Contract
    work: Work

    def __call__(self, payload: Mapping[str, Any]) -> Writes:
        """Run on a payload; return checked writes (JSON values)."""
        return self.contract.checked(self.work(View(self.contract, payload)))


REGISTRY: dict[Role, Agent] = {}


def agent(
    role: Role, *, reads: tuple[str, ...], writes: tuple[str, ...]
) -> Callable[[Work], Agent]:
    """Declare the decorated function as the agent of `role` and register it."""

    def declare(work: Work) -> Agent:
        if role in REGISTRY:
            raise ContractError(f"{role} has two agents")
        declared = Agent(Contract(role, reads, writes), work)
        REGISTRY[role] = declared
        return declared

    return declare


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
