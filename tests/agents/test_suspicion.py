"""Suspicion: what guardrails only suspect, search decides."""

from typing import Any

import pytest
from pytest_django import Settings

from agents.decision import Stage
from agents.names import Role, Route
from tests.agents.deciding import TWO_ROUTES, after, asked

EVIDENCE = [("excellent", Role.AUGMENTATION), ("good", Role.EVALUATOR)]


@pytest.mark.parametrize("stage", [Stage.INTAKE, Stage.SEARCH])
@pytest.mark.parametrize(("quality", "to"), EVIDENCE)
def test_what_is_only_suspected_passes_when_the_documents_answer_it(
    stage: Stage, quality: str, to: Role
) -> None:
    requests = {Role.GUARDRAILS.value: asked("system_abuse")}
    payload = {"clarification_requests": requests, "search_quality": quality}
    assert after(stage, guardrails_verdict="suspected", **payload).to == (to,)
    declined = after(stage, guardrails_verdict="unsafe", **payload)
    assert declined.to == (Role.CLARIFICATION,)
    assert declined.notes["clarification_reason"] == "system_abuse"


@pytest.mark.parametrize("stage", [Stage.INTAKE, Stage.SEARCH])
@pytest.mark.parametrize(
    "found",
    [
        {},
        {"search_quality": "poor"},
        {"search_quality": "good", "search_stats": {"absent": ["poison"]}},
    ],
)
def test_what_is_suspected_is_declined_when_the_documents_do_not_answer_it(
    stage: Stage, found: dict[str, Any]
) -> None:
    requests = {Role.GUARDRAILS.value: asked("system_abuse"), Role.SEARCH.value: asked()}
    verdict = {"guardrails_verdict": "suspected", "search_rounds": 1}
    decision = after(stage, clarification_requests=requests, **verdict, **found)
    assert decision.to == (Role.CLARIFICATION,)
    assert decision.notes["clarification_reason"] == "system_abuse"
    for name in ("search_results", "search_context", "response", "citations_used"):
        assert decision.notes[name] is None


@pytest.mark.parametrize(
    ("reason", "certainty", "is_declined"),
    [
        ("system_abuse", 0.5, False),
        ("system_abuse", 0.49, True),
        ("system_abuse", None, True),
        ("harmful_content", 0.9, True),
        ("inappropriate", 0.9, True),
    ],
)
def test_a_word_that_is_nowhere_declines_what_may_do_harm_and_a_doubtful_find(
    reason: str, certainty: float | None, is_declined: bool
) -> None:
    decision = after(
        Stage.SEARCH,
        clarification_requests={Role.GUARDRAILS.value: asked(reason)},
        guardrails_verdict="suspected",
        search_quality="good",
        search_stats={"absent": ["abend"], "certainty": certainty},
    )
    assert (decision.to == (Role.CLARIFICATION,)) is is_declined


def test_evidence_overrules_suspicion_but_not_a_question_to_the_user() -> None:
    requests = {Role.GUARDRAILS.value: asked("harmful_content"), Role.ROUTER.value: asked()}
    notes = after(
        Stage.INTAKE,
        guardrails_verdict="suspected",
        search_quality="good",
        clarification_requests=requests,
    ).notes
    assert notes["clarification_reason"] == "vague_request"


def test_one_after_another_suspicion_waits_for_the_search(settings: Settings) -> None:
    settings.PARALLEL_INTAKE = False
    requests = {Role.GUARDRAILS.value: asked("system_abuse")}
    suspected = {"guardrails_verdict": "suspected", "clarification_requests": requests}
    assert after(Stage.GUARDRAILS, **suspected).to == (Role.SEARCH,)
    assert after(Stage.GUARDRAILS, enabled_routes=TWO_ROUTES, **suspected).to == (Role.ROUTER,)
    assert after(Stage.ROUTER, route=Route.DOCUMENTATION, **suspected).to == (Role.SEARCH,)
    # Where nothing will be searched, nothing can speak for the question.
    fallback = {"route": Route.FALLBACK, "route_confidence": 0.9}
    assert after(Stage.ROUTER, **fallback, **suspected).to == (Role.CLARIFICATION,)
    vague = suspected | {"clarification_requests": requests | {Role.ROUTER.value: asked()}}
    assert after(Stage.ROUTER, **vague).notes["clarification_reason"] == "system_abuse"
