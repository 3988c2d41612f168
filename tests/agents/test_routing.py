"""The routing table: where every outcome of every agent leads."""

from typing import Any

import pytest
from pytest_django import Settings

from agents.decision import Stage
from agents.names import Role, Route, Status
from agents.routing import TABLE
from agents.trace.drawing import decisions, draw, explore
from agents.words import Phrase
from tests.agents.deciding import ONE_ROUTE, TWO_ROUTES, after, asked

ALL_ROUTES = [Route.DOCUMENTATION, Route.BILLING, Route.FALLBACK]
BILLED: dict[str, Any] = {"enabled_routes": ALL_ROUTES, "route": Route.BILLING}
SUSPECTED: dict[str, Any] = {
    "guardrails_verdict": "suspected",
    "clarification_requests": {"guardrails": asked("harmful_content")},
}
FORM: dict[str, Any] = {
    "language": "pl",
    "enabled_routes": ALL_ROUTES,
    "refund_form": {"invoice": "INV-1", "is_shown": True},
}


@pytest.mark.parametrize(
    ("stage", "payload", "to"),
    [
        (Stage.START, {"text": "How do I?"}, [Role.LANG]),
        (Stage.START, {"text": " /help"}, [Role.COMMAND]),
        (Stage.LANG, {"language": "en"}, [Role.TRANSLATION]),
        (Stage.LANG, FORM | {"text": "tak"}, [Role.BILLING]),
        (Stage.LANG, FORM | {"text": "the other one?"}, [Role.TRANSLATION]),
        (Stage.LANG, FORM | {"text": "tak", "enabled_routes": ONE_ROUTE}, [Role.TRANSLATION]),
        (Stage.LANG, FORM | {"text": "tak", "open_clarification": {}}, [Role.TRANSLATION]),
        (Stage.LANG, FORM | {"text": "tak", "refund_form": None}, [Role.TRANSLATION]),
        (Stage.TRANSLATION, {}, [Role.ESSENCE]),
        (Stage.ESSENCE, {}, [Role.GUARDRAILS, Role.SEARCH]),
        (
            Stage.ESSENCE,
            {"enabled_routes": TWO_ROUTES},
            [Role.GUARDRAILS, Role.ROUTER, Role.SEARCH],
        ),
        (Stage.INTAKE, {"search_quality": "excellent"}, [Role.AUGMENTATION]),
        (
            Stage.INTAKE,
            {"search_quality": "excellent", "search_stats": {"unproven": ["example"]}},
            [Role.EVALUATOR],
        ),
        (Stage.INTAKE, {"search_quality": "good"}, [Role.EVALUATOR]),
        (Stage.INTAKE, {"route": Route.FALLBACK, "search_quality": "good"}, [Role.EVALUATOR]),
        (Stage.INTAKE, {"route": Route.FALLBACK, "enabled_routes": TWO_ROUTES}, [Role.FALLBACK]),
        (Stage.ESSENCE, {"small_talk": "greeting"}, [Role.FALLBACK]),
        (Stage.ESSENCE, {"small_talk": "person"}, [Role.GUARDRAILS, Role.SEARCH]),
        (Stage.INTAKE, {"small_talk": "person", "search_quality": "good"}, [Role.FALLBACK]),
        (
            Stage.INTAKE,
            {"small_talk": "person", "search_quality": "excellent"},
            [Role.AUGMENTATION],
        ),
        (
            Stage.INTAKE,
            {"route": Route.FALLBACK, "enabled_routes": TWO_ROUTES, "route_confidence": 0.3}
            | {"search_quality": "excellent"},
            [Role.AUGMENTATION],
        ),
        (
            Stage.INTAKE,
            {"route": Route.FALLBACK, "enabled_routes": TWO_ROUTES, "route_confidence": 0.9}
            | {"search_quality": "excellent"},
            [Role.FALLBACK],
        ),
        (
            Stage.INTAKE,
            {"route": Route.FALLBACK, "enabled_routes": TWO_ROUTES, "route_confidence": 0.3}
            | {"search_quality": "poor"},
            [Role.FALLBACK],
        ),
        (
            Stage.ROUTER,
            {"route": Route.FALLBACK, "enabled_routes": TWO_ROUTES, "route_confidence": 0.3},
            [Role.SEARCH],
        ),
        (Stage.ESSENCE, {"enabled_routes": [Route.BILLING]}, [Role.GUARDRAILS]),
        (Stage.INTAKE, {"enabled_routes": [Route.BILLING]}, [Role.BILLING]),
        (
            Stage.INTAKE,
            {"enabled_routes": [Route.FALLBACK], "search_quality": "excellent"},
            [Role.FALLBACK],
        ),
        (Stage.INTAKE, BILLED | {"search_quality": "excellent"}, [Role.BILLING]),
        (Stage.INTAKE, BILLED | {"clarification_requests": {"essence": asked()}}, [Role.BILLING]),
        (Stage.INTAKE, BILLED | SUSPECTED, [Role.BILLING]),
        (Stage.INTAKE, BILLED | SUSPECTED | {"guardrails_verdict": "unsafe"}, [Role.CLARIFICATION]),
        (
            Stage.INTAKE,
            BILLED | {"enabled_routes": ONE_ROUTE, "search_quality": "excellent"},
            [Role.AUGMENTATION],
        ),
        (Stage.ROUTER, BILLED, [Role.BILLING]),
        (Stage.GUARDRAILS, {"enabled_routes": [Route.BILLING]}, [Role.BILLING]),
        (Stage.SEARCH, {"search_quality": "poor", "search_rounds": 1}, [Role.EVALUATOR]),
        (Stage.SEARCH, {"search_quality": "poor", "search_rounds": 2}, [Role.EVALUATOR]),
        (Stage.SEARCH, {}, [Role.EVALUATOR]),
        (Stage.EVALUATOR, {"evaluation": {"sufficient": True}}, [Role.AUGMENTATION]),
        (
            Stage.EVALUATOR,
            {"evaluation": {"sufficient": False}, "refined_query": "x", "search_rounds": 1},
            [Role.SEARCH],
        ),
        (
            Stage.EVALUATOR,
            {"evaluation": {"sufficient": False}, "refined_query": "x", "search_rounds": 2},
            [Role.AUGMENTATION],
        ),
        (Stage.AUGMENTATION, {}, [Role.RESPONSE]),
        (Stage.RESPONSE, {}, [Role.QUALITY]),
        (Stage.QUALITY, {"quality_decision": "research"}, [Role.SEARCH]),
        (Stage.QUALITY, {"quality_decision": "regenerate"}, [Role.RESPONSE]),
    ],
)
def test_stage_and_outcome_decide_who_works_next(
    stage: Stage, payload: dict[str, Any], to: list[Role]
) -> None:
    assert list(after(stage, **payload).to) == to


@pytest.mark.parametrize(
    ("stage", "payload", "status"),
    [
        (Stage.COMMAND, {}, Status.COMPLETED),
        (Stage.FALLBACK, {}, Status.COMPLETED),
        (Stage.BILLING, {}, Status.COMPLETED),
        (Stage.QUALITY, {"quality_decision": "approve"}, Status.COMPLETED),
        (Stage.QUALITY, {"quality_decision": "approve_with_reservations"}, Status.COMPLETED),
        (Stage.QUALITY, {"quality_decision": "research", "quality_returns": 2}, Status.COMPLETED),
        (Stage.CLARIFICATION, {}, Status.AWAITING_USER),
        (Stage.CLARIFICATION, {"clarification_rounds": 3}, Status.COMPLETED),
        (Stage.CLARIFICATION, {"clarification_reason": "off_topic"}, Status.COMPLETED),
        (Stage.CLARIFICATION, {"search_stats": {"chunks": 0}}, Status.COMPLETED),
        (Stage.ESSENCE, {"clarification_result": "exit"}, Status.COMPLETED),
    ],
)
def test_stage_and_outcome_decide_how_the_turn_ends(
    stage: Stage, payload: dict[str, Any], status: Status
) -> None:
    assert after(stage, **payload).ends == status


@pytest.mark.parametrize(
    ("stage", "judged"),
    [
        (Stage.EVALUATOR, {"evaluation": {"sufficient": False, "missing": "an example"}}),
        (Stage.QUALITY, {"quality_decision": "research", "quality_analysis": "an example"}),
    ],
)
def test_what_a_search_missed_is_forgotten_as_a_fact_and_kept_with_its_query(
    stage: Stage, judged: dict[str, Any]
) -> None:
    payload = judged | {"limitations": ["an example"], "search_rounds": 1}
    decision = after(stage, canonical_question="how?", refined_query="how example", **payload)
    assert decision.to == (Role.SEARCH,)
    forgotten = {"limitations", "evaluation", "quality_analysis"}
    assert {name for name, value in decision.notes.items() if value is None} == forgotten
    first = {"query": "how?", "missing": "an example"}
    assert decision.notes["tried_searches"] == [first, {"query": "how example"}]
    again = after(
        Stage.QUALITY,
        tried_searches=decision.notes["tried_searches"],
        quality_decision="research",
        quality_analysis="a number",
        refined_query="how many",
    )
    second = {"query": "how example", "missing": "a number"}
    assert again.notes["tried_searches"] == [first, second, {"query": "how many"}]


@pytest.mark.parametrize(
    ("stage", "payload"),
    [
        (Stage.FALLBACK, {"small_talk": "person"}),
        (Stage.CLARIFICATION, {"clarification_rounds": 3}),
    ],
)
def test_a_person_answers_who_asks_for_one_and_who_was_asked_back_too_often(
    settings: Settings, stage: Stage, payload: dict[str, Any]
) -> None:
    assert after(stage, **payload).ends == Status.COMPLETED
    settings.HANDOVER = True
    assert after(stage, **payload).ends == Status.WITH_STAFF


def test_who_asks_for_a_person_is_not_searched_for(settings: Settings) -> None:
    settings.HANDOVER = True
    assert after(Stage.ESSENCE, small_talk="person").to == (Role.FALLBACK,)


@pytest.mark.parametrize("declined", [{"clarification_reason": "off_topic"}, {"small_talk": None}])
def test_nobody_is_handed_over_for_what_is_declined_or_said_in_passing(
    settings: Settings, declined: dict[str, Any]
) -> None:
    settings.HANDOVER = True
    stage = Stage.CLARIFICATION if declined.get("clarification_reason") else Stage.FALLBACK
    assert after(stage, clarification_rounds=3, **declined).ends == Status.COMPLETED


def test_who_leaves_a_clarification_hears_a_farewell() -> None:
    assert after(Stage.ESSENCE, clarification_result="exit").phrase is Phrase.FAREWELL


def test_english_skips_translation_when_the_deployment_says_so(settings: Settings) -> None:
    settings.TRANSLATE_ENGLISH = "skip"
    decision = after(Stage.LANG, language="en", text="How?")
    assert decision.to == (Role.ESSENCE,)
    assert decision.notes["text_eng"] == "How?"
    assert after(Stage.LANG, language="de").to == (Role.TRANSLATION,)


def test_the_gravest_question_to_the_user_comes_first() -> None:
    requests = {role.value: asked() for role in (Role.SEARCH, Role.ROUTER)}
    requests[Role.GUARDRAILS] = asked("harmful_content")
    decision = after(Stage.INTAKE, clarification_requests=requests)
    assert decision.to == (Role.CLARIFICATION,)
    assert decision.notes["clarification_reason"] == "harmful_content"


def test_a_refusal_of_guardrails_discards_what_the_others_found() -> None:
    requests = {Role.GUARDRAILS.value: asked("off_topic")}
    notes = after(Stage.INTAKE, clarification_requests=requests).notes
    assert notes["search_results"] is None
    assert "search_results" in notes


def test_one_after_another_a_refused_question_is_not_searched(settings: Settings) -> None:
    settings.PARALLEL_INTAKE = False
    assert after(Stage.ESSENCE).to == (Role.GUARDRAILS,)
    requests = {Role.GUARDRAILS.value: asked("harmful_content")}
    assert after(Stage.GUARDRAILS, clarification_requests=requests).to == (Role.CLARIFICATION,)
    assert after(Stage.GUARDRAILS).to == (Role.SEARCH,)
    assert after(Stage.GUARDRAILS, enabled_routes=TWO_ROUTES).to == (Role.ROUTER,)
    assert after(Stage.ROUTER, route=Route.DOCUMENTATION).to == (Role.SEARCH,)


def test_an_answer_that_never_satisfies_goes_out_as_the_best_there_was() -> None:
    best = {"response": "the better one", "quality_score": 0.6}
    decision = after(
        Stage.QUALITY,
        quality_decision="regenerate",
        quality_returns=2,
        quality_score=0.3,
        response="the worse one",
        best_answer=best,
    )
    assert decision.ends == Status.COMPLETED
    assert decision.notes["response"] == "the better one"
    assert decision.notes["quality_decision"] == "approve_with_reservations"


FIRST = {"response": "the first", "quality_score": 0.3, "answer_worth": 0.9}


@pytest.mark.parametrize(
    ("decision", "worth", "score", "sent"),
    [
        # Whoever approves it, or finds it better: it is clearly worth less.
        ("approve", 0.5, 0.9, "the first"),
        ("regenerate", 0.5, 0.9, "the first"),
        # Not clearly: the score decides.
        ("approve", 0.7, 0.9, None),
        ("regenerate", 0.7, 0.9, "the second"),
        ("regenerate", 0.7, 0.2, "the first"),
        ("regenerate", 1.0, 0.2, "the first"),
    ],
)
def test_an_answer_that_is_clearly_worth_less_does_not_replace_the_one_before(
    decision: str, worth: float, score: float, sent: str | None
) -> None:
    ended = after(
        Stage.QUALITY,
        quality_decision=decision,
        quality_returns=2,
        quality_score=score,
        answer_worth=worth,
        response="the second",
        best_answer=FIRST,
    )
    assert ended.ends == Status.COMPLETED
    assert ended.notes.get("response") == sent


def test_an_answer_that_comes_back_as_it_was_is_not_sent_back_again() -> None:
    ended = after(
        Stage.QUALITY,
        quality_decision="regenerate",
        quality_returns=1,
        quality_score=0.3,
        answer_worth=0.9,
        response="the first",
        best_answer=FIRST,
    )
    assert ended.ends == Status.COMPLETED
    assert ended.notes["quality_decision"] == "approve_with_reservations"


def test_an_answer_that_is_clearly_worth_more_replaces_one_that_scored_more() -> None:
    before = FIRST | {"answer_worth": 0.2}
    second = {"response": "the second", "quality_score": 0.1, "answer_worth": 0.9}
    ended = after(
        Stage.QUALITY,
        quality_decision="regenerate",
        quality_returns=2,
        best_answer=before,
        **second,
    )
    assert ended.notes["response"] == "the second"


@pytest.mark.parametrize("handover", [True, False])
@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("routes", [ONE_ROUTE, TWO_ROUTES])
def test_every_outcome_of_every_agent_has_a_way_out(
    settings: Settings, parallel: bool, routes: list[Route], handover: bool
) -> None:
    settings.PARALLEL_INTAKE, settings.HANDOVER = parallel, handover
    edges = explore(enabled_routes=routes)
    endings = set(Status)
    for stage in edges:
        reached, waiting = {str(stage)}, [str(stage)]
        while waiting:
            stage_name = waiting.pop()
            for target in edges[Stage(stage_name)] - endings - reached:
                reached.add(target)
                waiting.append(target)
        assert any(edges[Stage(name)] & endings for name in reached), stage


def test_every_stage_can_be_reached(settings: Settings) -> None:
    reached = set(explore(enabled_routes=TWO_ROUTES))
    settings.PARALLEL_INTAKE = False
    reached |= set(explore(enabled_routes=TWO_ROUTES))
    assert reached == set(TABLE)


def test_no_loop_can_go_round_for_ever() -> None:
    """Once every counter is used up, what is left of the table has no circle."""
    used_up = {"search_rounds": 99, "quality_returns": 99, "enabled_routes": TWO_ROUTES}
    used_up |= {"plan_step": 99, "extra_rounds": 99}
    edges = explore(**used_up)

    def walk(stage: str, path: tuple[str, ...]) -> None:
        assert stage not in path, f"{' → '.join(path)} → {stage}"
        for target in edges.get(Stage(stage), set()) if stage in set(Stage) else ():
            walk(target, (*path, stage))

    walk(Stage.START, ())


@pytest.mark.parametrize("stage", Stage)
def test_a_decision_goes_on_or_ends_but_never_both(stage: Stage) -> None:
    for values, decision in decisions(stage):
        assert bool(decision.to) != bool(decision.ends), values


def test_the_picture_shows_every_stage_and_every_ending() -> None:
    edges = explore(enabled_routes=TWO_ROUTES)
    picture = draw(edges)
    shown = {*edges, *(target for targets in edges.values() for target in targets)}
    assert all(f">{name.replace('_', ' ')}</text>" in picture for name in shown)
    assert picture.count("<path d=") == 1 + sum(map(len, edges.values()))
