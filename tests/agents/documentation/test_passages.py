"""Passages: which words of a question are said to be missing."""

import pytest

from agents.attributes import Passage
from agents.documentation.passages import searched_for, unmentioned
from tests.agents.passages import PASSAGES

FOUND = [Passage.model_validate(each) for each in PASSAGES]


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What are the fees in Canada?", ["fees", "canada"]),
        ("is there a discount for students", ["discount", "students"]),
        ("check whether the contract complies with the audit policy", ["audit"]),
        ("im trying to reset my password but it dont work", ["password"]),
        ("could you tell me if version 9 supports oracle", ["9", "oracle"]),
        ("is there a UK region", ["uk", "region"]),
        ("hwo can i descale it", []),
    ],
)
def test_only_words_that_carry_the_subject_are_missing(question: str, missing: list[str]) -> None:
    assert unmentioned(question, FOUND) == missing


def test_words_searched_for_instead_are_named_in_the_users_language() -> None:
    stats = {"corrected": {"machne": "machine", "machnie": "machine"}}
    assert searched_for(stats, "en") == "Searched for: machine."
    assert "machine" in searched_for(stats, "ru")
    assert searched_for(stats, "ru") != searched_for(stats, "en")
    assert searched_for({}, "en") == ""
