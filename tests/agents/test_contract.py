"""What an agent may read and write."""

import ast
import inspect
import json
from collections.abc import Iterator
from types import ModuleType

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pydantic import ValidationError

from agents.attributes import TRACE, UNIVERSAL, WORK, Remark
from agents.contract import REGISTRY, Contract, View, agent, refuse_conflicts
from agents.errors import ContractError
from agents.names import Role
from agents.routing import PARALLEL_ROLES
from agents.trace.drawing import OUTCOMES
from conversations import answers, turn_memory
from tests import factories


class Message(View):
    text: str = ""
    history: list[Remark] | None = None
    language: str = "en"


class Nothing(View):
    pass


@pytest.fixture
def contract() -> Contract[Message]:
    return Contract(Role.LANG, Message, writes=("language", "confidence"))


def test_an_agent_sees_what_its_view_declares_in_its_shape() -> None:
    remark = {"role": "user", "text": "Hello", "time": "2026-11-22T16:00:00+00:00"}
    view = Message.of({"text": "Hello", "history": [remark], "summary": "secret"})
    assert (view.text, view.history) == ("Hello", [Remark.model_validate(remark)])
    assert "secret" not in repr(view)


@pytest.mark.parametrize("payload", [{}, {"text": None, "history": None, "language": None}])
def test_an_attribute_nobody_wrote_reads_as_its_view_says(payload: dict[str, None]) -> None:
    view = Message.of(payload)
    assert (view.text, view.history, view.language) == ("", None, "en")


def test_what_one_agent_does_to_an_empty_list_the_next_does_not_see() -> None:
    class Wishes(View):
        response_notes: list[str] = []

    Wishes.of({}).response_notes.append("brief")
    assert Wishes.of({}).response_notes == []


def test_what_an_agent_reads_cannot_be_written_over() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Message.of({}).text = "another"  # type: ignore[misc]


def test_what_an_agent_reads_is_what_its_view_declares(contract: Contract[Message]) -> None:
    assert contract.reads == ("text", "history", "language")


@pytest.mark.parametrize("kind", [AttributeError, ContractError])
def test_reading_an_undeclared_attribute_names_agent_attribute_and_contract(
    kind: type[Exception],
) -> None:
    message = r"test_contract read 'summary', .*Message.*\(reads: text, history, language\)"
    with pytest.raises(kind, match=message):
        _ = Message.of({"summary": "secret"}).summary  # type: ignore[attr-defined]


def test_a_view_that_reads_an_unknown_attribute_is_refused() -> None:
    class Unknown(View):
        no_such_thing: str = ""

    with pytest.raises(ContractError, match=r"lang .* read 'no_such_thing': no such attribute"):
        Contract(Role.LANG, Unknown, writes=())


def test_a_view_that_takes_an_attribute_for_what_it_is_not_is_refused() -> None:
    class Mistaken(View):
        search_results: list[str] = []

    with pytest.raises(ContractError, match=r"'search_results' as list\[str\]: it is .*Passage"):
        Contract(Role.LANG, Mistaken, writes=())


def test_a_view_that_does_not_say_how_an_unwritten_attribute_reads_is_refused() -> None:
    class Hopeful(View):
        text: str

    with pytest.raises(ContractError, match=r"lang does not say how 'text' reads"):
        Contract(Role.LANG, Hopeful, writes=())


def test_writing_an_undeclared_attribute_names_agent_attribute_and_contract(
    contract: Contract[Message],
) -> None:
    with pytest.raises(ContractError, match=r"lang wrote 'response'.*writes: language, confidence"):
        contract.checked({"response": "Hi"})


@pytest.mark.parametrize("name", ["target_role", "status", "deadline", "stage", "search_rounds"])
def test_only_the_framework_writes_system_fields(contract: Contract[Message], name: str) -> None:
    with pytest.raises(ContractError, match=f"lang wrote '{name}': only the framework may"):
        contract.checked({name: "search"})


@pytest.mark.parametrize("name", ["target_role", "stage", "history", "no_such_thing"])
def test_a_contract_that_declares_what_agents_never_write_is_refused(name: str) -> None:
    with pytest.raises(ContractError, match=name):
        Contract(Role.LANG, Nothing, writes=(name,))


def test_every_agent_may_ask_for_clarification(contract: Contract[Message]) -> None:
    writes = {"needs_clarification": True, "clarification_reason": "vague_request"}
    assert contract.checked(writes) == writes


def test_an_unknown_reason_for_clarification_is_refused(contract: Contract[Message]) -> None:
    with pytest.raises(ContractError, match=r"clarification_reason.*'because'"):
        contract.checked({"needs_clarification": True, "clarification_reason": "because"})


def test_asking_for_clarification_takes_a_reason(contract: Contract[Message]) -> None:
    with pytest.raises(ContractError, match=r"lang asked for clarification without a reason"):
        contract.checked({"needs_clarification": True})


@pytest.mark.parametrize(
    ("name", "value"), [("confidence", 1.5), ("language", "Klingon"), ("confidence", "high")]
)
def test_a_value_of_the_wrong_shape_is_refused_by_name(
    contract: Contract[Message], name: str, value: object
) -> None:
    with pytest.raises(ContractError, match=f"lang wrote '{name}'"):
        contract.checked({name: value})


def test_a_route_that_does_not_exist_is_refused() -> None:
    router = Contract(Role.ROUTER, Nothing, writes=("route",))
    with pytest.raises(ContractError, match=r"'route'.*'astrology'"):
        router.checked({"route": "astrology"})


def test_a_role_has_one_agent() -> None:
    with pytest.raises(ContractError, match=r"lang has two agents"):
        agent(Role.LANG, reads=Nothing, writes=())(lambda _: {})


def test_every_role_but_the_manager_has_an_agent() -> None:
    assert set(REGISTRY) == set(Role) - {Role.MANAGER}


def _written() -> set[str]:
    return {name for agent in REGISTRY.values() for name in agent.contract.writes}


def _looked_up(module: ModuleType) -> set[str]:
    """The words by which a module looks into a payload: `x["word"]` and `x.get("word")`."""
    words = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(word)), ctx=ast.Load()):
                words.add(word)
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(word)), *_]):
                words.add(word)
    return words


@pytest.fixture(scope="module")
def reads() -> set[str]:
    """What agents, the routing table, the conversation's memory and the reply read."""
    by_agents = {name for agent in REGISTRY.values() for name in agent.contract.reads}
    return (
        by_agents
        | set(OUTCOMES)
        | _looked_up(turn_memory)
        | _looked_up(answers)
        | set(answers.STATE_EXCERPT)
    )


def test_what_an_agent_writes_is_read_by_somebody_or_marked_as_trace(reads: set[str]) -> None:
    assert _written() - reads - TRACE - set(UNIVERSAL) == set()


@pytest.mark.parametrize("role", REGISTRY)
def test_an_agent_uses_what_it_declares_to_read(role: Role) -> None:
    contract = REGISTRY[role].contract
    module = inspect.getmodule(contract.view)
    assert module is not None
    used = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    assert set(contract.reads) - used == set()


def test_nobody_reads_what_is_marked_as_trace(reads: set[str]) -> None:
    assert reads & TRACE == set()


def test_every_attribute_that_agents_may_write_is_written_by_one() -> None:
    assert set(WORK) - _written() - set(UNIVERSAL) == set()
    assert _written() >= TRACE


def test_the_table_names_what_is_written_for_the_trace_alone(
    capsys: pytest.CaptureFixture[str], db: None, client: Client
) -> None:
    call_command("contracts", json=True)
    printed = json.loads(capsys.readouterr().out)
    key = factories.key(User.objects.create_user("ops"), scopes=["admin"])
    assert client.get("/api/admin/contracts/", headers=key).json() == printed
    rows = {row["role"]: row for row in printed}
    assert rows["augmentation"]["trace"] == ["context_structure"]
    assert {"canonical_question", "search_results"} < set(rows["evaluator"]["reads"])
    assert rows["evaluator"]["trace"] == []


def test_agents_that_run_together_write_different_attributes() -> None:
    refuse_conflicts(PARALLEL_ROLES)


@pytest.fixture
def quarrel() -> Iterator[None]:
    """Guardrails suddenly writes what the router writes."""
    honest = REGISTRY[Role.GUARDRAILS]
    del REGISTRY[Role.GUARDRAILS]
    agent(Role.GUARDRAILS, reads=Nothing, writes=("route",))(lambda _: {})
    yield
    REGISTRY[Role.GUARDRAILS] = honest


@pytest.mark.usefixtures("quarrel")
def test_agents_that_run_together_and_write_the_same_stop_the_start() -> None:
    with pytest.raises(ContractError, match=r"guardrails and router .* both write 'route'"):
        refuse_conflicts(PARALLEL_ROLES)
