"""What an agent may read and write."""

from collections.abc import Iterator

import pytest

from agents.contract import REGISTRY, Contract, View, agent, refuse_conflicts
from agents.errors import ContractError
from agents.names import Role
from agents.routing import TOGETHER


@pytest.fixture
def contract() -> Contract:
    return Contract(Role.LANG, reads=("text", "history"), writes=("language", "confidence"))


def test_an_agent_sees_what_it_declared_to_read(contract: Contract) -> None:
    assert View(contract, {"text": "Hello", "summary": "secret"}).text == "Hello"


def test_an_attribute_nobody_wrote_reads_as_none(contract: Contract) -> None:
    assert View(contract, {}).history is None


def test_reading_an_undeclared_attribute_names_agent_attribute_and_contract(
    contract: Contract,
) -> None:
    with pytest.raises(ContractError, match=r"lang read 'summary'.*reads: text, history"):
        _ = View(contract, {"summary": "secret"}).summary


def test_writing_an_undeclared_attribute_names_agent_attribute_and_contract(
    contract: Contract,
) -> None:
    with pytest.raises(ContractError, match=r"lang wrote 'response'.*writes: language, confidence"):
        contract.checked({"response": "Hi"})


@pytest.mark.parametrize("name", ["target_role", "status", "deadline", "stage", "search_rounds"])
def test_only_the_framework_writes_system_fields(contract: Contract, name: str) -> None:
    with pytest.raises(ContractError, match=f"lang wrote '{name}': only the framework may"):
        contract.checked({name: "search"})


@pytest.mark.parametrize("name", ["target_role", "stage", "history", "no_such_thing"])
def test_a_contract_that_declares_what_agents_never_write_is_refused(name: str) -> None:
    with pytest.raises(ContractError, match=name):
        Contract(Role.LANG, reads=(), writes=(name,))


def test_a_contract_that_reads_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(ContractError, match=r"no_such_thing"):
        Contract(Role.LANG, reads=("no_such_thing",), writes=())


def test_every_agent_may_ask_for_clarification(contract: Contract) -> None:
    asked = {"needs_clarification": True, "clarification_reason": "vague_request"}
    assert contract.checked(asked) == asked


def test_an_unknown_reason_for_clarification_is_refused(contract: Contract) -> None:
    with pytest.raises(ContractError, match=r"clarification_reason.*'because'"):
        contract.checked({"needs_clarification": True, "clarification_reason": "because"})


def test_asking_for_clarification_takes_a_reason(contract: Contract) -> None:
    with pytest.raises(ContractError, match=r"lang asked for clarification without a reason"):
        contract.checked({"needs_clarification": True})


@pytest.mark.parametrize(
    ("name", "value"), [("confidence", 1.5), ("language", "Klingon"), ("confidence", "high")]
)
def test_a_value_of_the_wrong_shape_is_refused_by_name(
    contract: Contract, name: str, value: object
) -> None:
    with pytest.raises(ContractError, match=f"lang wrote '{name}'"):
        contract.checked({name: value})


def test_a_route_that_does_not_exist_is_refused() -> None:
    router = Contract(Role.ROUTER, reads=(), writes=("route",))
    with pytest.raises(ContractError, match=r"'route'.*'astrology'"):
        router.checked({"route": "astrology"})


def test_a_role_has_one_agent() -> None:
    with pytest.raises(ContractError, match=r"lang has two agents"):
        agent(Role.LANG, reads=(), writes=())(lambda _: {})


def test_every_role_but_the_manager_has_an_agent() -> None:
    assert set(REGISTRY) == set(Role) - {Role.MANAGER}


def test_agents_that_run_together_write_different_attributes() -> None:
    refuse_conflicts(TOGETHER)


@pytest.fixture
def quarrel() -> Iterator[None]:
    """Guardrails suddenly writes what the router writes."""
    honest = REGISTRY[Role.GUARDRAILS]
    del REGISTRY[Role.GUARDRAILS]
    agent(Role.GUARDRAILS, reads=(), writes=("route",))(lambda _: {})
    yield
    REGISTRY[Role.GUARDRAILS] = honest


@pytest.mark.usefixtures("quarrel")
def test_agents_that_run_together_and_write_the_same_stop_the_start() -> None:
    with pytest.raises(ContractError, match=r"guardrails and router .* both write 'route'"):
        refuse_conflicts(TOGETHER)
