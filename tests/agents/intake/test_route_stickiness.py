"""Route stickiness: when a conversation changes its route."""

import pytest

from agents.attributes import Remark
from agents.intake.route_stickiness import favoured, last_route, next_route
from agents.names import Route

DOCUMENTATION, BILLING, FALLBACK = Route.DOCUMENTATION, Route.BILLING, Route.FALLBACK
ALL = [DOCUMENTATION, BILLING, FALLBACK]


def said(*roles: str) -> list[Remark]:
    return [Remark.model_validate({"role": r, "text": "…", "time": "2026-11-21"}) for r in roles]


@pytest.mark.parametrize(
    ("proposed", "confidence", "last", "route"),
    [
        (DOCUMENTATION, 0.7, None, DOCUMENTATION),
        (DOCUMENTATION, 0.5, None, DOCUMENTATION),
        (DOCUMENTATION, 0.49, None, FALLBACK),
        (DOCUMENTATION, 0.2, DOCUMENTATION, DOCUMENTATION),
        (FALLBACK, 0.69, DOCUMENTATION, DOCUMENTATION),
        (FALLBACK, 0.7, DOCUMENTATION, FALLBACK),
        (FALLBACK, 0.2, None, FALLBACK),
        (BILLING, 0.7, DOCUMENTATION, BILLING),
        (BILLING, 0.69, DOCUMENTATION, DOCUMENTATION),
        (DOCUMENTATION, 0.7, BILLING, DOCUMENTATION),
        (DOCUMENTATION, 0.69, BILLING, BILLING),
        (BILLING, 0.5, None, BILLING),
        (BILLING, 0.49, None, FALLBACK),
    ],
)
def test_only_a_sure_proposal_changes_the_route(
    proposed: Route, confidence: float, last: Route | None, route: Route
) -> None:
    assert next_route(proposed, confidence, ALL, last) is route


@pytest.mark.parametrize(
    ("proposed", "flags", "confidence"),
    [
        (BILLING, {}, 0.6),
        (BILLING, {"refund_in_progress": False}, 0.6),
        (BILLING, {"refund_in_progress": True}, 0.75),
        (DOCUMENTATION, {"refund_in_progress": True}, 0.45),
        (DOCUMENTATION, {"another": True}, 0.6),
    ],
)
def test_a_refund_that_is_going_on_favours_billing(
    proposed: Route, flags: dict[str, bool], confidence: float
) -> None:
    assert favoured(proposed, 0.6, flags) == pytest.approx(confidence)


def test_favour_stays_within_what_a_confidence_can_be() -> None:
    assert favoured(BILLING, 0.95, {"refund_in_progress": True}) == 1
    assert favoured(FALLBACK, 0.05, {"refund_in_progress": True}) == 0


def test_a_route_that_is_not_enabled_is_not_taken() -> None:
    assert next_route(DOCUMENTATION, 0.9, [FALLBACK], None) is FALLBACK
    assert next_route(FALLBACK, 0.3, [FALLBACK], DOCUMENTATION) is FALLBACK


@pytest.mark.parametrize(
    ("last_agent", "route"),
    [
        ("response", DOCUMENTATION),
        ("quality", DOCUMENTATION),
        ("documentation", DOCUMENTATION),
        ("billing", BILLING),
        ("orchestrator", Route.ANALYSIS),
        ("fallback", None),
        ("clarification", None),
        ("command", None),
        ("", None),
    ],
)
def test_who_spoke_last_tells_the_route(last_agent: str, route: Route | None) -> None:
    assert last_route(last_agent, said("user", "assistant")) is route


def test_a_conversation_without_a_recent_answer_is_on_no_route() -> None:
    assert last_route("response", []) is None
    assert last_route("response", said("assistant", *["user"] * 4)) is None
    assert last_route("response", said("assistant", *["user"] * 3)) is DOCUMENTATION
