"""Replies: what answers a form that is open, and what is a question beside it."""

import pytest

from agents.attributes import RefundForm
from agents.support.dialogue.replies import answers, consent, named, strange, without
from agents.words import LOCALES, Phrase

FORM = RefundForm(is_asked=True, invoices=["INV-20251001", "INV-u123"])


@pytest.mark.parametrize("language", LOCALES)
def test_the_buttons_say_yes_and_no_in_every_language(language: str) -> None:
    assert consent(Phrase.SUGGEST_OPEN_CASE.in_language(language)) == "yes"
    assert consent(Phrase.SUGGEST_NO_CASE.in_language(language)) == "no"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes, please!", "yes"),
        ("tak", "yes"),
        ("OK, dziękuję", "yes"),
        ("Да.", "yes"),
        ("ja bitte", "yes"),
        ("好的", "yes"),
        ("No thanks", "no"),
        ("nie", "no"),
        ("не надо", "no"),
        ("yes but only 40", ""),
        ("no, the other invoice", ""),
        ("no problem with the internet?", ""),
        ("please", ""),
        ("", ""),
    ],
)
def test_only_what_says_nothing_else_is_a_yes_or_a_no(text: str, answer: str) -> None:
    assert consent(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "yes", "nie", "45", "45,00 zł", "no, 50", "INV-20251001", "inv 20251001 please", "20251001",
        "Reason: overcharge. Amount: PLN 100", "Powód: overcharge, kwota 45 PLN", "Inny powód",
        "The service did not work", "INV-u123, 2025-10-01: 45.00 PLN", "NaN", "-1",
    ],
)  # fmt: skip
def test_these_answer_a_form(text: str) -> None:
    assert answers(text, FORM)


@pytest.mark.parametrize(
    "text",
    [
        "Does the plan for 45 PLN include calls to other countries?",
        "My router blinks red.",
        "what plan do I have?",
        "Why was I charged 45 PLN for that on INV-20251001?",
        "the other day it worked",
        "",
    ],
)
def test_these_are_questions_beside_it(text: str) -> None:
    assert not answers(text, FORM)


@pytest.mark.parametrize("text", ["no, the other invoice", "nie, druga", "No: why not?"])
def test_a_no_with_a_few_words_answers_what_was_just_shown(text: str) -> None:
    shown = FORM.model_copy(update={"is_shown": True})
    assert answers(text, shown)
    assert not answers(text, FORM)
    assert not answers(text, shown, is_asked_else=True)


@pytest.mark.parametrize(
    "text",
    ["no, how do I add a folder of documents?", "the other invoice", "November, the invoice"],
)
def test_a_long_no_and_what_is_none_are_questions_beside_what_was_shown(text: str) -> None:
    assert not answers(text, FORM.model_copy(update={"is_shown": True}))


def test_a_yes_answers_what_else_was_asked_since() -> None:
    beside = FORM.model_copy(update={"turns_beside": 1})
    assert answers("yes", beside)
    assert not answers("yes", beside, is_asked_else=True)
    assert not answers("yes", beside.model_copy(update={"is_asked": False}))
    assert answers("45 PLN", beside, is_asked_else=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("INV-20251001", ["INV-20251001"]),
        ("refund inv20251001!", ["INV-20251001"]),
        ("inv 20251001", ["INV-20251001"]),
        ("number 20251001", ["INV-20251001"]),
        ("INV_20251001 and inv-U123", ["INV-20251001", "INV-u123"]),
        ("INV-202510011", []),
        ("INV-2025100", []),
        ("u123", []),
    ],
)
def test_a_number_is_known_however_it_is_spelt(text: str, found: list[str]) -> None:
    assert named(text, FORM.invoices) == found


def test_a_tail_that_two_share_names_neither() -> None:
    assert named("20251001", ["A-20251001", "B-20251001"]) == []


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("INV-u456 please", "INV-u456"),
        ("INV-9", "INV-9"),
        ("inv 99", "inv 99"),
        ("INV-20251001", ""),
        ("my invoice of 2025", ""),
        ("45 PLN", ""),
    ],
)
def test_what_is_written_like_a_number_and_is_none_is_told(text: str, other: str) -> None:
    assert strange(text, FORM.invoices) == other


def test_numbers_are_taken_out_written_out_or_by_their_tails() -> None:
    assert without("INV 20251001 or 20251001: 45", ["INV-20251001"]).split() == ["or", ":", "45"]
