"""Contract: what an agent reads and writes, and the view that holds it to that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from agents.attributes import (
    ADAPTERS,
    BOOKKEEPING,
    MEMORY,
    REDUCERS,
    SHAPES,
    TRACE,
    UNIVERSAL,
    WORK,
)
from agents.errors import ContractError, UndeclaredRead
from agents.llm.outcomes import ModelFailure
from agents.names import INSTANCES, KIND, Role
from agents.reducer import TAKEN, Reducer

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


class View(BaseModel):
    """What one agent sees of the payload: the attributes that its class declares, parsed.

    A class per role says with annotations what is read, each as its shape in `attributes.py`, and
    with defaults how an attribute reads that nobody has written yet.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> Self:
        """Return what the class declares of a payload."""
        names = [name for name in cls.model_fields if payload.get(name) is not None]
        return cls.model_validate({name: payload[name] for name in names})

    if not TYPE_CHECKING:
        # Not for the type checker's eyes: it would take every attribute for declared.
        def __getattr__(self, name: str) -> Any:
            """Raise UndeclaredRead."""
            view = type(self)
            raise UndeclaredRead(
                f"{view.__module__} read {name!r}, which {view.__name__} does not declare "
                f"(reads: {', '.join(view.model_fields)})"
            )


V = TypeVar("V", bound=View)


@dataclass(frozen=True)
class Contract(Generic[V]):
    """An agent's declaration: its role, its view of the payload, and what it may write."""

    role: Role
    view: type[V]
    writes: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, shape in get_type_hints(self.view).items():
            if name in self.reads:
                self._check_read(name, shape)
        for name in self.writes:
            if name in SYSTEM_FIELDS or name in BOOKKEEPING or name in MEMORY:
                raise ContractError(
                    f"{self.role} declares to write {name!r}: not an agent's to write"
                )
            if name not in WORK:
                raise ContractError(f"{self.role} declares to write {name!r}: no such attribute")

    @property
    def reads(self) -> tuple[str, ...]:
        """The attributes that the view declares."""
        return tuple(self.view.model_fields)

    def _check_read(self, name: str, shape: Any) -> None:
        if name not in SHAPES:
            raise ContractError(f"{self.role} declares to read {name!r}: no such attribute")
        if shape not in (SHAPES[name], SHAPES[name] | None):
            raise ContractError(
                f"{self.role} declares to read {name!r} as {shape}: it is {SHAPES[name]}"
            )
        if self.view.model_fields[name].is_required():
            raise ContractError(
                f"{self.role} does not say how {name!r} reads while nobody has written it"
            )

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


Work = Callable[[V], Writes]
ModelWork = Callable[[V, "Model"], Writes]
Recovery = Callable[[V, ModelFailure], Writes]
# Of a step that nobody did: why in a word, and for the operator.
Absence = Callable[[str, str], Writes]


@dataclass(frozen=True)
class Result:
    """What an agent wrote (JSON values), and whether a model or its own rules did it."""

    writes: Writes
    mode: str = ""  # "model", "extractive", or empty where there was nothing to ask a model
    degraded: str = ""  # why the rules did it although there is a model


@dataclass
class Agent(Generic[V]):
    """A contract and the pure verbs that fulfil it: with a model, and without one."""

    contract: Contract[V]
    work: Work[V] | None = None
    model_work: ModelWork[V] | None = None
    recovery: Recovery[V] | None = None
    absence: Absence | None = None

    def __call__(self, payload: Mapping[str, Any]) -> Writes:
        """Run on a payload without a model; return checked writes (JSON values)."""
        return self.perform(payload, None).writes

    def without_model(self, work: Work[V]) -> Work[V]:
        """Declare how the role works when there is no model, or it cannot be asked."""
        self.work = work
        return work

    def after_failure(self, recovery: Recovery[V]) -> Recovery[V]:
        """Declare what the role does instead of that once its model was asked and failed."""
        self.recovery = recovery
        return recovery

    def unless_done(self, absence: Absence) -> Absence:
        """Declare what stands for the role's work where nobody did it; else the turn fails."""
        self.absence = absence
        return absence

    def perform(self, payload: Mapping[str, Any], llm: "Model | None") -> Result:
        """Run on a payload, with the model if there is one and it can be asked."""
        view = self.contract.view.of(payload)
        degraded = ""
        if self.model_work and llm:
            try:
                writes = self.contract.checked(self.model_work(view, llm))
                return Result(writes, "model" if llm.number else "")
            except ModelFailure as failure:
                degraded = f"{failure.outcome}: {failure}"
                llm.tokens.withdraw()
                if self.recovery:
                    writes = self.contract.checked(self.recovery(view, failure))
                    return Result(writes, "extractive", degraded)
        if self.work is None:
            raise ContractError(f"{self.contract.role} has no way to work without a model")
        mode = "extractive" if self.model_work else ""
        return Result(self.contract.checked(self.work(view)), mode, degraded)


REGISTRY: dict[Role, Agent[Any]] = {}


def agent(role: Role, *, reads: type[V], writes: tuple[str, ...]) -> Callable[[Work[V]], Agent[V]]:
    """Declare the decorated function as the agent of `role` and register it."""

    def declare(work: Work[V]) -> Agent[V]:
        return _register(Agent(Contract(role, reads, writes), work=work))

    return declare


def llm_agent(
    role: Role, *, reads: type[V], writes: tuple[str, ...]
) -> Callable[[ModelWork[V]], Agent[V]]:
    """Declare the decorated function as the agent of `role`, which asks a model.

    What it does when no model can be asked is declared beside it: `@….without_model`.
    """

    def declare(model_work: ModelWork[V]) -> Agent[V]:
        return _register(Agent(Contract(role, reads, writes), model_work=model_work))

    return declare


def _register(agent: Agent[V]) -> Agent[V]:
    role = agent.contract.role
    if role in REGISTRY:
        raise ContractError(f"{role} has two agents")
    REGISTRY[role] = agent
    return agent


def refuse_conflicts(parallel: tuple[Role, ...]) -> None:
    """Raise ContractError when two agents that run at the same time write the same attribute.

    They may where a reducer says what becomes of it.
    """
    writers: dict[str, Role] = {}
    for role in parallel:
        for name in REGISTRY[role].contract.writes:
            if name in UNIVERSAL or name in REDUCERS:
                continue
            if name in writers:
                raise ContractError(
                    f"{writers[name]} and {role} run in parallel and both write {name!r}, "
                    "which has no reducer"
                )
            writers[name] = role


def refuse_unfit(reducers: Mapping[str, Reducer]) -> None:
    """Raise ContractError for a reducer of what no agent writes, or that it cannot work with."""
    for name, reducer in reducers.items():
        if name not in WORK:
            raise ContractError(f"{name!r} has a reducer, and no agent may write it")
        shape = get_origin(SHAPES[name]) or SHAPES[name]
        if shape not in TAKEN[reducer]:
            raise ContractError(f"{name!r} is {SHAPES[name]}, with which {reducer} cannot work")


class ContractRow(BaseModel):
    """What one role may see and say, and where its work waits."""

    role: Role
    kind: str
    queue: str
    instances: int  # as many as there are unless a setting says otherwise
    reads: list[str]
    writes: list[str]
    trace: list[str]  # of what it writes, what nobody reads but people who look at a trace


def contract_table() -> list[ContractRow]:
    """Return the contracts of all roles, as the code has them."""
    return [_row(role) for role in Role]


def _row(role: Role) -> ContractRow:
    agent = REGISTRY.get(role)
    writes = agent.contract.writes if agent else ("stage", "response", "target_role")
    return ContractRow(
        role=role,
        kind=KIND[role],
        queue=role.queue,
        instances=INSTANCES[role],
        reads=list(agent.contract.reads if agent else ("the whole payload",)),
        writes=list(writes),
        trace=[name for name in writes if name in TRACE],
    )
