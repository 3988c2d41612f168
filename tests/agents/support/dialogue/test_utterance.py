"""Utterance: what customers want and why, in their own words, by exemplars."""

import json
from pathlib import Path

import pytest

from agents.attributes import RefundForm
from agents.support.dialogue.utterance import Utterance

LINES = Path(__file__).with_name("messages.jsonl").read_text(encoding="utf-8").splitlines()
MESSAGES = [json.loads(line) for line in LINES]
INVOICES, CASES = ("INV-20251001", "INV-20250901"), ("R10001",)


def said(text: str, language: str = "en", english: str = "") -> Utterance:
    return Utterance(text, english, language, invoices=INVOICES, cases=CASES)


def read(text: str, what: str, language: str = "en") -> str:
    utterance = said(text, language)
    return utterance.wish if what == "wish" else utterance.reason


def figures(what: str, languages: set[str]) -> tuple[int, int, int, int]:
    """Return how many messages are understood, not understood, mistaken, and how many there are."""
    pairs = [
        (each[what], read(each["text"], what, each["language"]))
        for each in MESSAGES
        if what in each and each["language"] in languages
    ]
    right = sum(expected == got for expected, got in pairs)
    unknown = sum(expected != got == "" for expected, got in pairs)
    return right, unknown, len(pairs) - right - unknown, len(pairs)


@pytest.mark.parametrize("what", ["wish", "reason"])
def test_most_of_what_is_said_in_english_is_understood_and_little_is_mistaken(what: str) -> None:
    right, _, mistaken, count = figures(what, {"en"})
    assert right >= 0.85 * count
    assert mistaken <= 0.06 * count


@pytest.mark.parametrize("what", ["wish", "reason"])
def test_what_the_local_model_cannot_read_is_not_guessed(what: str) -> None:
    assert figures(what, {"pl", "de", "ru"})[2] == 0


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("What about R10001?", "case"),
        ("i r10001 już rozpatrzone?", "case"),
        ("R77777?", "case"),
        ("Chcę refund za fakturę INV-20251001", "refund"),
        ("what is inv 20251001 about", "invoices"),
        ("Pokaż moje faktury", "invoices"),
        ("ЧТО С МОИМ ВОЗВРАТОМ?", "case"),
    ],
)
def test_numbers_and_buttons_are_understood_in_every_language(text: str, wish: str) -> None:
    assert read(text, "wish", "pl") == wish


def test_a_translation_is_read_where_there_is_one() -> None:
    assert said("Geld her, sofort!", "de", "I want my money back!").wish == "refund"


@pytest.mark.parametrize(
    ("text", "form", "is_answer"),
    [
        ("The service was down.", RefundForm(), True),
        ("The service was down.", RefundForm(reason="other"), False),
        ("The service was down.", RefundForm(turns_beside=1), False),
        ("The service was down.", None, False),
        ("Why is the service down?", RefundForm(), False),
        ("I like it.", RefundForm(), False),
    ],
)
def test_a_reason_answers_a_form_that_has_just_asked_for_it(
    text: str, form: RefundForm | None, *, is_answer: bool
) -> None:
    assert Utterance(text).answers(form) == is_answer
