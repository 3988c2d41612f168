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


TANK = (
    "Fill the tank with water and 50 g of citric acid. Press the red button for five seconds. "
    "The water drains into the lower tank. Descale every three months."
)
REFUNDS = (
    "Only the owner may request a refund. It must be requested within 14 days after the purchase. "
    "Every plan has three guests."
)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Press the green button for five seconds.", TANK),
        ("The water drains into the upper tank.", TANK),
        ("Fill the tank with milk and 50 g of citric acid.", TANK),
        ("Press the lower tank for five seconds.", TANK),
        ("Any member may request a refund.", REFUNDS),
        ("The owner may request a refund.", REFUNDS),
        ("Every plan has three administrators.", REFUNDS),
        ("It must be requested within 14 days before the purchase.", REFUNDS),
        ("It may be requested within 14 days after the purchase.", REFUNDS),
        ("Cancel one week before.", "Cancel two weeks before."),
        ("It needs at most 40 W.", "It needs at least 40 W."),
        ("Guests may invite and delete files.", "Guests may invite. Owners may delete files."),
    ],
)
def test_near_as_it_is_what_differs_in_one_word_is_not_verified(
    sentence: str, passage: str
) -> None:
    assert support(sentence, passage) == "weak"


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("Press the red button for five minutes.", TANK),
        ("Press the red button for fifty seconds.", TANK),
        ("Descale every three weeks.", TANK),
        ("It must be requested within fourteen hours after the purchase.", REFUNDS),
        ("Add two hundred grams of citric acid.", TANK),
    ],
)
def test_a_number_in_words_has_its_unit_too(sentence: str, passage: str) -> None:
    assert support(sentence, passage) == "unsupported"


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The red button is pressed for 5 s.", TANK),
        ("Water drains into the lower tank.", TANK),
        ("It must be requested within fourteen days after the purchase.", REFUNDS),
        ("Press Clean for five seconds and rinse the tank twice.", CLEANING),
        ("To descale the machine, fill the tank with descaler and water.", CLEANING),
        ("Book trains early when you travel.", "# Travel > Trains\n\nBook trains early."),
        ("It takes 25 minutes.", "It takes twenty-five minutes."),
        ("It stores two hundred files.", "It stores 200 files."),
    ],
)
def test_other_forms_of_the_same_words_are_verified(sentence: str, passage: str) -> None:
    assert support(sentence, passage) == "verified"


def test_a_number_whose_unit_is_not_said_beside_it_may_still_agree() -> None:
    assert support("It waits 5 more minutes.", "It waits 5 minutes.") == "weak"


@pytest.mark.parametrize(
    "sentence", ["Drücken Sie den roten Knopf nicht.", "Не нажимайте красную кнопку."]
)
def test_across_languages_nothing_is_verified(sentence: str) -> None:
    assert support(sentence, TANK) == "weak"


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
        ("The Clean button is then pressed for five seconds or longer.", CLEANING),
        ("The Clean lamp may then blink quickly.", CLEANING),
    ]
    assert supports(pairs) == ["weak", "unsupported"]
