"""Fallback: what it offers."""

import pytest

from agents.ending.fallback import offer
from agents.names import Route


def test_the_open_routes_are_offered() -> None:
    writes = offer({"text": "?", "language": "en", "enabled_routes": ["documentation", "fallback"]})
    assert writes["suggested_actions"][0] == "Ask a question about the documents"
    assert writes["response"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("How can I change the colour of my invoices?", Route.DOCUMENTATION),
        ("Good evening, how are you doing?", None),
    ],
)
def test_the_hint_is_the_route_that_the_text_is_about_or_none(
    text: str, hint: Route | None
) -> None:
    payload = {"text": text, "language": "en", "enabled_routes": ["documentation", "fallback"]}
    assert offer(payload)["route_hint"] == hint


def test_without_an_open_route_there_is_no_hint_and_still_an_action() -> None:
    writes = offer({"text": "How?", "language": "de", "enabled_routes": ["fallback"]})
    assert writes["route_hint"] is None
    assert writes["suggested_actions"] == ["/help eingeben, um zu sehen, was ich kann"]
