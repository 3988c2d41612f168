"""Check: what is verified, what is unsupported, and what no rule can tell."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.documentation.citations.check import sentences, support, within, words_of
from agents.documentation.citations.particulars import Particulars
from prompts import prompt
from tests.agents.passages import CLEANING, WARRANTY

# Passages with statements made of them: altered in one point, faithful to the word, or in other
# words. Each names its language and what becomes of it.
PAIRS: dict[str, list[dict[str, str]]] = json.loads(
    (Path(__file__).parent / "altered_pairs.json").read_text("utf-8")
)


def pairs(group: str) -> list[Any]:
    return [pytest.param(each, id=f"{each['kind']}-{each['language']}") for each in PAIRS[group]]


@pytest.mark.parametrize("pair", pairs("altered"))
def test_an_altered_statement_is_never_verified(pair: dict[str, str]) -> None:
    status = support(pair["statement"], pair["passage"])
    assert status != "verified"
    assert status == pair["status"]


@pytest.mark.parametrize("pair", pairs("faithful"))
def test_a_statement_is_verified_word_for_word_however_it_is_set(pair: dict[str, str]) -> None:
    assert support(pair["statement"], pair["passage"]) == "verified"


@pytest.mark.parametrize("pair", pairs("reworded"))
def test_what_is_said_in_other_words_is_weak(pair: dict[str, str]) -> None:
    assert support(pair["statement"], pair["passage"]) == "weak"


def test_the_pairs_are_of_many_kinds_and_languages() -> None:
    altered = PAIRS["altered"]
    assert len({each["kind"] for each in altered}) >= 18
    assert {"it", "pt", "nl", "pl", "zh", "ja", "th"} <= {each["language"] for each in altered}


@pytest.mark.parametrize(
    ("written", "passage"),
    [
        ("1,000", "1.000"),
        ("1 000", "1,000"),
        ("1'000", "1000"),
        ("10:30", "10.30"),
        ("3.50", "3,5"),
        ("1.2.3", "1.2.3"),
        ("15.03.2026", "2026-03-15"),
        ("\u0968\u0966", "20"),
        ("5GB", "5 GB"),
        ("20\u5206", "20 min"),
        ("v2.4.1", "2.4.1"),
        ("2.4.1", "v2.4.1"),
        ("T2.1", "(T2.1)"),
        ("https://example.org/v2/api", "https://example.org/v2/api"),
        ("\u8bf7\u8bbf\u95eeexample.org\u3002", "https://example.org/"),
    ],
)
def test_a_number_is_found_by_its_value(written: str, passage: str) -> None:
    assert Particulars([f"It is {passage}."]).lacks(f"It is {written}.") == []


@pytest.mark.parametrize(
    ("written", "passage"),
    [
        ("It takes 2 parts.", "It can be taken in two parts."),
        ("Nach 25 Tagen endet die Frist.", "Die Frist endet nach fünfundzwanzig Tagen."),
        ("It ends after sixteen weeks.", "It ends after 16 weeks."),
        ("Set `DAILY_BUDGET=0` for no limit.", "With 0 the `DAILY_BUDGET` sets no limit."),
    ],
)
def test_a_number_is_found_however_it_is_spelled(written: str, passage: str) -> None:
    assert Particulars([passage]).lacks(written) == []


def test_a_spelled_number_that_no_passage_has_is_missed() -> None:
    assert Particulars(["It ends after 16 weeks."]).lacks("It ends after eighteen weeks.") == ["18"]
    assert Particulars(["The `LIMIT` is 5."]).lacks("Set `LIMIT=7`.") == ["LIMIT=7"]


@pytest.mark.parametrize(
    ("written", "passage"), [("5", "3.5"), ("0.125", "125"), ("1.2.4", "1.2.3"), ("200", "20")]
)
def test_another_number_is_missed(written: str, passage: str) -> None:
    assert Particulars([f"It is {passage}."]).lacks(f"It is {written}.") == [written]


def test_what_another_of_the_given_passages_names_is_not_from_nowhere() -> None:
    assert Particulars([CLEANING, WARRANTY, "Care for 49 EUR"]).lacks("It costs 49 EUR.") == []


def test_where_every_noun_has_a_capital_none_is_a_name() -> None:
    passage = "Leeren Sie den Tank jeden Abend. Danach die Maschine mit Wasser und Essig reinigen."
    said = "Leeren Sie den Tank jeden Abend, danach reinigen mit Zitrone."
    assert support(said, passage) == "weak"
    assert support("Leeren Sie den Tank jeden Abend bei maxWater.", passage) == "unsupported"


def test_a_statement_out_of_two_sentences_that_do_not_follow_is_not_verified() -> None:
    said = "The machine needs descaling every three months. Descaling takes about twenty minutes."
    assert support(said, CLEANING) == "weak"


def test_a_letter_without_case_is_a_word_and_a_question_mark_is_said() -> None:
    assert words_of("\u6309 **OK**\uff1f") == ["\u6309", "ok", "?"]
    assert words_of("-5 to 10-12 %, _not_ more") == ["-5", "to", "10-12", "%", "not", "more"]


def test_words_stand_together_or_do_not() -> None:
    assert within("the **Clean** button", "Press the Clean button!")
    assert not within("lean button", "Press the Clean button!")


@pytest.mark.parametrize("said", ["", "Yes.", "asdf qwer zxcv uiop hjkl [C1]"])
def test_nothing_said_and_gibberish_are_not_verified(said: str) -> None:
    assert support(said, CLEANING) == "weak"


def test_an_echoed_prompt_is_not_verified() -> None:
    echoed = (Path(prompt.__file__).parent / "response.md").read_text("utf-8")
    assert not [each for each in sentences(echoed) if support(each, WARRANTY) == "verified"]


def test_what_stands_there_word_for_word_is_verified_whatever_it_looks_like() -> None:
    passage = "The lock uses a SHA1 key with HOST_1, and names such as R2D2-like ones."
    assert support(passage, passage) == "verified"
    assert Particulars([passage]).lacks("The lock uses a SHA1 key.") == []
