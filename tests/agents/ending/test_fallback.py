"""Fallback: what it offers."""

from agents.ending.fallback import offer


def test_the_open_routes_are_offered_and_the_first_is_the_hint() -> None:
    writes = offer({"text": "?", "language": "en", "enabled_routes": ["documentation", "fallback"]})
    assert writes["suggested_actions"][0] == "Ask a question about the documents"
    assert writes["route_hint"] == "documentation"
    assert writes["response"]


def test_without_an_open_route_there_is_no_hint_and_still_an_action() -> None:
    writes = offer({"text": "?", "language": "de", "enabled_routes": ["fallback"]})
    assert writes["route_hint"] is None
    assert writes["suggested_actions"] == ["/help eingeben, um zu sehen, was ich kann"]
