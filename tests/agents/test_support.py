"""Support: what a passage says, may say, and does not say."""

import pytest

from agents.documentation import support as module
from agents.documentation.support import support, supports
from knowledge.errors import EmbeddingUnavailable
from tests.agents.passages import CLEANING, GRINDER, WARRANTY

GUESTS = "The Team plan costs 12 EUR per seat and month. Call `export_all` with an API key."


@pytest.mark.parametrize(
    ("sentence", "passage", "status"),
    [
        ("Press the **Clean** button for five seconds. [C1]", CLEANING, "verified"),
        ("press the clean button for five seconds", CLEANING, "verified"),
        ("Rinse the tank twice. See the care guide.", CLEANING, "verified"),
        ("The Clean button is pressed for five seconds.", CLEANING, "verified"),
        ("Hold the Clean button down for five seconds until it beeps.", CLEANING, "weak"),
        ("Press the red button for ten minutes at night.", CLEANING, "unsupported"),
        ("The moon is made of green cheese.", CLEANING, "unsupported"),
        ("", CLEANING, "unsupported"),
        ("Yes.", CLEANING, "weak"),
    ],
)
def test_support_is_verified_weak_or_none(sentence: str, passage: str, status: str) -> None:
    assert support(sentence, passage) == status


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The Team plan costs 15 EUR per seat and month.", GUESTS),
        ("The Team plan costs 12 USD per seat and month.", GUESTS),
        ("Descaling takes about 20 hours.", CLEANING),
        ("The warranty covers damage by limescale.", WARRANTY),
        ("The grinder does not have five settings.", GRINDER),
        ("Call `export_some` with an API key.", GUESTS),
        ("Read more at https://example.org/team about the Team plan.", GUESTS),
    ],
)
def test_a_number_a_unit_a_negation_or_code_that_differs_is_unsupported(
    sentence: str, passage: str
) -> None:
    assert support(sentence, passage) == "unsupported"


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Descaling takes about 20 minutes.", CLEANING),
        ("The Team plan costs 12 EUR per seat and month.", GUESTS),
        ("It allows 1,000 exports.", "It allows 1.000 exports."),
        ("It waits 3 hours.", "It waits three hours."),
    ],
)
def test_a_number_may_be_written_differently(sentence: str, passage: str) -> None:
    assert support(sentence, passage) == "verified"


def test_a_name_the_passage_does_not_hold_is_never_verified() -> None:
    assert support("The warranty of Delonghi covers defects for two years.", WARRANTY) == "weak"


def test_words_out_of_a_negated_sentence_are_not_verified() -> None:
    passage = "Never press the Clean button while the lid is open."
    assert support("press the Clean button while the lid is open", passage) == "weak"


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("Das Entkalken dauert ungefähr zwanzig Minuten.", "weak"),
        ("Das Entkalken dauert ungefähr 20 Minuten.", "weak"),
        ("Das Entkalken dauert ungefähr 90 Minuten.", "unsupported"),
        ("Das Entkalken dauert ungefähr 20 Stunden.", "unsupported"),
        ("Удаление накипи занимает около 20 минут.", "weak"),
        ("Удаление накипи занимает около 45 минут.", "unsupported"),
        ("除垢大约需要 20 分钟。", "weak"),
        ("除垢大约需要 50 分钟。", "unsupported"),
    ],
)  # fmt: skip
def test_across_languages_numbers_decide_and_the_rest_is_weak(sentence: str, status: str) -> None:
    assert support(sentence, CLEANING) == status


def test_without_an_embedding_the_terms_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(texts: list[str]) -> None:
        raise EmbeddingUnavailable("no weights")

    monkeypatch.setattr(module, "encode", unavailable)
    pairs = [
        ("The Clean button is pressed for five seconds.", CLEANING),
        ("The Clean lamp may then blink quickly.", CLEANING),
    ]
    assert supports(pairs) == ["weak", "unsupported"]
