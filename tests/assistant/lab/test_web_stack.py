"""What the benches over HTTP make of the answers they got."""

import pytest

from assistant.lab.web_stack import Answered, spread


@pytest.mark.parametrize(
    ("answer", "is_fair"),
    [
        (Answered(200, 1.0), True),
        (Answered(202, 1.0), True),
        (Answered(429, 1.0, "5"), True),
        (Answered(429, 1.0), False),
        (Answered(503, 1.0, "5"), False),
        (Answered(0, 1.0), False),
    ],
)
def test_who_is_answered_or_told_when_to_come_back_is_treated_fairly(
    answer: Answered, is_fair: bool
) -> None:
    assert answer.is_fair is is_fair


def test_times_are_told_in_milliseconds() -> None:
    seconds = [number / 1000 for number in range(1, 101)]
    assert spread(seconds) == {"p50": 51.0, "p95": 96.0, "max": 100.0}
    assert spread([]) == {"p50": 0.0, "p95": 0.0, "max": 0.0}
