"""Failures: how long a provider asks to be left alone, in all the ways it may say so."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from httpx2 import Headers

from agents.llm import failures
from agents.llm.failures import retry_after
from agents.llm.outcomes import ModelFailure, Outcome, most_telling

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After-Ms": "250", "Retry-After": "1"}, 0.25),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90),
        ({"Retry-After": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0),
        ({"Retry-After": "Sun, 22 Nov 2026 12:00:30 -0000"}, 30),
    ],
)
def test_it_is_told_in_seconds_or_as_a_date(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], seconds: float | None
) -> None:
    monkeypatch.setattr(failures, "now", lambda: NOW)
    assert retry_after(Headers(headers)) == seconds


DOWN = ModelFailure(Outcome.SERVER_ERROR, "down")
REFUSED = ModelFailure(Outcome.REFUSED, "no")
OPEN = ModelFailure(Outcome.BREAKER_OPEN, "open")
LATE = ModelFailure(Outcome.OUT_OF_TIME, "late")


@pytest.mark.parametrize(
    ("candidates", "telling"),
    [
        ([DOWN], DOWN),
        ([DOWN, OPEN], DOWN),
        ([OPEN, DOWN], DOWN),
        ([REFUSED, DOWN], REFUSED),
        ([DOWN, REFUSED], REFUSED),
        ([DOWN, LATE], DOWN),
        ([OPEN, OPEN], OPEN),
    ],
)
def test_of_several_failures_the_one_is_told_that_says_most(
    candidates: list[ModelFailure], telling: ModelFailure
) -> None:
    assert most_telling(candidates) is telling
