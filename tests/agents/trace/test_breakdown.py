"""What each role decided, in the order of the turn."""

from typing import Any

from agents.models import Envelope, Step
from agents.trace.breakdown import KEPT, SAW, breakdown

ROLES = ("manager", "lang", "manager", "guardrails", "search", "clarification")


def titles(payload: dict[str, Any]) -> dict[str, tuple[dict[str, str], list[str]]]:
    """Title of a group → its facts, and the names of the rest."""
    groups = breakdown(Envelope(payload=payload), [Step(role=role) for role in ROLES])
    return {group.title: (dict(group.facts), [name for name, _ in group.rest]) for group in groups}


def test_groups_come_in_the_order_of_the_turn_and_bookkeeping_last() -> None:
    payload = {
        "stage": "clarification",
        "history": [{"role": "user", "text": "x"}],
        "search_quality": "poor",
        "guardrails_verdict": "safe",
        "guardrails_analysis": "no harm in it",
        "language": "en",
        "needs_clarification": True,
        "response": "told above",
    }
    assert titles(payload) == {
        "lang": ({"language": "en"}, []),
        "guardrails": ({"guardrails verdict": "safe"}, ["guardrails_analysis"]),
        "search": ({"search quality": "poor"}, []),
        "clarification": ({"needs clarification": "yes"}, []),
        SAW: ({}, ["history"]),
        KEPT: ({}, ["stage"]),
    }


def test_who_asked_the_user_is_named_beside_the_reason() -> None:
    asked = {"reason": "vague_request", "message": ""}
    payload = {
        "needs_clarification": True,
        "clarification_reason": "vague_request",
        "clarification_message": "",
        "clarification_requests": {
            "search": asked | {"reason": "insufficient_context"},
            "lang": asked,
        },
    }
    facts, _ = titles(payload)["clarification"]
    assert facts["asked by"] == "lang"


def test_an_attribute_that_several_roles_may_write_is_of_the_last_that_did() -> None:
    roles = ("response", "quality", "clarification")
    steps = [Step(role=role, output={"suggested_actions": [role]}) for role in roles]
    (group,) = breakdown(Envelope(payload={"suggested_actions": ["clarification"]}), steps)
    assert group.title == "clarification"
    (group,) = breakdown(Envelope(payload={"suggested_actions": ["response"]}), steps[:1])
    assert group.title == "response"


def test_what_a_search_was_judged_by_stands_first_and_structures_are_folded() -> None:
    stats = {"confidence": 0.123456, "threshold": 0.35, "hits": {"keyword": [1]}, "absent": ["teh"]}
    facts, rest = titles({"search_stats": stats, "search_results": [{"title": "x"}]})["search"]
    assert facts == {"confidence": "0.123", "threshold": "0.35", "absent": "teh"}
    assert rest == ["search_results", "search_stats"]
