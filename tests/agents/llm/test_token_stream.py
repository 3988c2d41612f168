"""Token stream: what those who watch see of an answer that is being written."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from agents.llm.token_stream import TokenStream
from agents.steps import events

STREAM, MARK = "test:tokens", "test:mark"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that stands still until the test moves it."""
    clock = SimpleNamespace(seconds=100.0)
    clock.monotonic = lambda: clock.seconds
    monkeypatch.setattr("agents.llm.token_stream.time", clock)
    events.connection().delete(STREAM)
    yield clock
    events.connection().delete(STREAM)


def entries() -> list[dict[str, Any]]:
    # Nobody waits for what is published. What is published last arrives last.
    events.connection().delete(MARK)
    events.publish(MARK, "mark")
    assert events.connection().xread({MARK: "0-0"}, block=5000)
    stored: Any = events.connection().xrange(STREAM)
    assert all(fields["event"] == "token" for _, fields in stored)
    return [json.loads(fields["data"]) for _, fields in stored]


def texts() -> list[tuple[str, bool]]:
    return [(each["text"], each["replaces"]) for each in entries()]


def test_pieces_that_follow_closely_are_passed_on_together(clock: SimpleNamespace) -> None:
    tokens = TokenStream(STREAM, step=7, attempt=2)
    for text in ("One", " two", " three"):
        tokens.add(text)
    clock.seconds += 0.05
    tokens.add(" four")
    tokens.add(" five")
    tokens.flush()
    tokens.flush()
    assert texts() == [("One", False), (" two three four", False), (" five", False)]
    assert {(each["step"], each["attempt"]) for each in entries()} == {(7, 2)}


def test_a_replacement_voids_what_was_said_and_what_still_waited() -> None:
    tokens = TokenStream(STREAM)
    tokens.add("Wrong")
    tokens.add(" and worse")
    tokens.replace("Right")
    assert texts() == [("Wrong", False), ("Right", True)]
    assert tokens.has_text


def test_an_answer_is_withdrawn_once_and_only_if_something_of_it_was_said() -> None:
    tokens = TokenStream(STREAM)
    tokens.withdraw()
    assert texts() == []
    tokens.add("Wrong")
    tokens.add(" and worse")
    tokens.withdraw()
    tokens.withdraw()
    assert texts() == [("Wrong", False), ("", True)]
    assert not tokens.has_text


def test_after_a_withdrawal_the_text_begins_anew(clock: SimpleNamespace) -> None:
    tokens = TokenStream(STREAM)
    tokens.add("Wrong")
    tokens.withdraw()
    clock.seconds += 1
    tokens.add("Right")
    assert texts() == [("Wrong", False), ("", True), ("Right", False)]


def test_without_anybody_watching_nothing_is_passed_on() -> None:
    tokens = TokenStream()
    tokens.add("One")
    tokens.replace("Two")
    assert texts() == []
    assert not tokens.has_text
