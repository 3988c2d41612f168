"""Reducers: what agents that work at the same time wrote comes to one value, in any order."""

import json
from itertools import permutations
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agents.attributes import REDUCERS
from agents.contract import Result, refuse_unfit
from agents.decision import Decision, Stage
from agents.errors import ContractError
from agents.names import Role
from agents.reducer import COMMUTATIVE, Reducer, reduced
from agents.steps.records import Claim, Conclusion, claim_ready, payload_after_agent, record
from tests.conftest import Begin

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
LISTS = st.lists(st.one_of(TEXTS, st.integers(-9, 9)), max_size=4)
VALUES: dict[Reducer, st.SearchStrategy[Any]] = {
    Reducer.KEEP_FIRST: TEXTS,
    Reducer.TAKE_MAX: st.integers(0, 4),
    Reducer.MERGE_DICT: st.dictionaries(TEXTS, TEXTS, max_size=3),
    Reducer.UNIQUE_LIST: LISTS,
    Reducer.CONCATENATE: LISTS,
    Reducer.OR: st.booleans(),
}
CASES = st.sampled_from(Reducer).flatmap(
    lambda reducer: st.tuples(st.just(reducer), st.lists(VALUES[reducer], min_size=1, max_size=4))
)
OFTEN = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def folded(reducer: Reducer, values: list[Any]) -> Any:
    result = None
    for value in values:
        result = reduced(reducer, result, value)
    return result


@pytest.mark.parametrize(
    ("reducer", "values", "result"),
    [
        (Reducer.KEEP_FIRST, ["", "GDPR", "HIPAA"], "GDPR"),
        (Reducer.TAKE_MAX, [2, 4, 3], 4),
        (Reducer.MERGE_DICT, [{"a": 1}, {"b": 2}, {"a": 3}], {"a": 3, "b": 2}),
        (Reducer.UNIQUE_LIST, [["b", "a", "b"], ["a", "c"]], ["b", "a", "c"]),
        (Reducer.CONCATENATE, [["b", "a"], ["a"]], ["b", "a", "a"]),
        (Reducer.OR, [False, True, False], True),
    ],
)
def test_each_reducer_does_what_its_name_says(
    reducer: Reducer, values: list[Any], result: Any
) -> None:
    assert folded(reducer, values) == result


@pytest.mark.django_db
@OFTEN
@given(CASES)
@example((Reducer.UNIQUE_LIST, [["a", "a"]]))
@example((Reducer.KEEP_FIRST, ["", "a"]))
def test_the_database_reduces_as_python_does(case: tuple[Reducer, list[Any]]) -> None:
    reducer, values = case
    result: Any = None
    with connection.cursor() as cursor:
        for value in values:
            before = None if result is None else json.dumps(result)
            cursor.execute(
                "SELECT agents_reduce(%s, %s::jsonb, %s::jsonb)",
                [reducer, before, json.dumps(value)],
            )
            (text,) = cursor.fetchone()
            result = json.loads(text) if isinstance(text, str) else text
    assert result == folded(reducer, values)


@OFTEN
@given(CASES)
def test_where_order_does_not_matter_any_order_gives_the_same(
    case: tuple[Reducer, list[Any]],
) -> None:
    reducer, values = case
    if reducer in COMMUTATIVE:
        assert len({folded(reducer, list(each)) for each in permutations(values)}) == 1
    if reducer is Reducer.MERGE_DICT:
        apart = [{f"{place}{key}": each for key, each in value.items()}
                 for place, value in enumerate(values)]  # fmt: skip
        results = [folded(reducer, list(each)) for each in permutations(apart)]
        assert all(each == results[0] for each in results)


WRITTEN: dict[Role, dict[str, Any]] = {
    Role.EXTRACTOR: {
        "gravest": 1, "documents_read": ["d1", "d2"], "is_incomplete": False,
        "agent_outputs": {"extractor": {"rounds": 2}}, "analysis_target": "",
        "shortcomings": [{"role": "extractor", "reason": "model"}],
    },
    Role.CLASSIFIER: {
        "gravest": 4, "documents_read": ["d2", "d3"], "is_incomplete": True,
        "agent_outputs": {"classifier": {"rounds": 1}}, "analysis_target": "GDPR",
        "shortcomings": [{"role": "classifier", "reason": "time"}],
    },
    Role.GAP_SYNTHESIZER: {"gravest": 2, "analysis_target": "HIPAA"},
}  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("order", list(permutations(WRITTEN)))
def test_whoever_is_done_first_the_payload_is_the_same(
    begin: Begin, order: tuple[Role, ...]
) -> None:
    envelope = begin()
    (manager,) = claim_ready(Role.MANAGER, 1)
    record(manager, Conclusion(decision=Decision(Stage.SPECIALISTS, tuple(WRITTEN))))
    claims: dict[Role, Claim] = {role: claim_ready(role, 1)[0] for role in WRITTEN}
    expected = claims[Role.EXTRACTOR].payload
    for role in WRITTEN:
        expected = payload_after_agent(expected, role, WRITTEN[role])
    for role in order:
        record(claims[role], Conclusion(Result(WRITTEN[role])))
    envelope.refresh_from_db()
    assert envelope.payload == expected
    assert envelope.payload["documents_read"] == ["d1", "d2", "d3"]
    assert envelope.payload["analysis_target"] == "GDPR"
    assert [each["role"] for each in envelope.payload["shortcomings"]] == [
        "extractor",
        "classifier",
    ]


def test_a_reducer_that_does_not_fit_stops_the_start() -> None:
    refuse_unfit(REDUCERS)
    with pytest.raises(ContractError, match="take_max cannot work"):
        refuse_unfit({"agent_outputs": Reducer.TAKE_MAX})
    with pytest.raises(ContractError, match="no agent may write it"):
        refuse_unfit({"history": Reducer.CONCATENATE})
