"""Language: what a text is taken to be written in, however short it is."""

import pytest

from knowledge.language import language, probabilities


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "Der Leuchtturm hat vier Zimmer für Gäste, und das Frühstück gibt es um sieben Uhr. "
            * 3,
            "de",
        ),
        ("Маяк сдаёт четыре комнаты для гостей, а завтрак подают в семь часов утра. " * 3, "ru"),
        ("The lighthouse has four rooms for guests, and breakfast is served at seven. " * 3, "en"),
        ("Kurz.", "en"),
        ("```\n" + "x = 1\n" * 100 + "```", "en"),
        ("12345 67890 " * 20, "en"),
        ("", "en"),
    ],
)
def test_language_is_that_of_the_text_and_english_when_in_doubt(text: str, name: str) -> None:
    assert language(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Отпуск составляет 28 дней в году.", "ru"),
        ("Відпустка — 28 днів.", "uk"),
        ("Отпускът е двадесет и осем дни годишно и се ползва до края на годината.", "bg"),
        ("Η άδεια είναι 28 ημέρες.", "el"),
        ("חופשה שנתית", "he"),
        ("إجازة سنوية", "ar"),
        ("چگونه مرخصی بگیرم", "fa"),
        ("年假为每年28天。", "zh"),
        ("年假为每年二十八天，须提前两周申请，地点在“のぞみ”酒店，费用由公司承担。", "zh"),
        ("年次休暇は28日です。", "ja"),
        ("연차 휴가는 28일입니다.", "ko"),
        ("ลาพักร้อน", "th"),
        ("वार्षिक अवकाश", "hi"),
        ("বার্ষিক ছুটি", "bn"),
    ],
)
def test_the_script_tells_the_language_of_a_few_words(text: str, name: str) -> None:
    assert language(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Der Urlaub beträgt 28 Tage im Jahr.", "de"),
        ("¿Cuántos días de vacaciones hay?", "es"),
        ("Wer erst spät ankommt, klingelt unten am Tor des Leuchtturms.", "de"),
        ("You can proxy our script", "en"),
        ("Managing team member roles", "en"),
        ("Change your invoice email", "en"),
        ("Google Mail", "en"),
    ],
)
def test_latin_letters_tell_where_there_are_enough_or_one_that_tells(text: str, name: str) -> None:
    assert language(text) == name


def test_the_same_text_always_has_the_same_language() -> None:
    assert (
        len({language("Change your invoice email, und zwar sofort bitte") for _ in range(5)}) == 1
    )


def test_chances_are_shares_and_nothing_is_said_without_a_letter() -> None:
    chances = probabilities("Отпуск")
    assert sum(chances.values()) == pytest.approx(1)
    assert {"ru", "uk", "bg", "mk", "en"} <= chances.keys()
    assert probabilities("12, 👍!") == {}


def test_who_types_without_accents_is_understood() -> None:
    chances = probabilities("jak moge zmienic moje haslo")
    assert chances["pl"] > 0.5


def test_capitals_and_typographic_apostrophes_change_nothing() -> None:
    assert probabilities("COMMENT CHANGER L’ADRESSE") == probabilities("comment changer l'adresse")


def test_the_weights_are_those_of_the_features_that_are_read() -> None:
    """A model trained with other features would guess: of these words it is sure."""
    for word, name in (("obrigado", "pt"), ("wachtwoord", "nl"), ("perché", "it")):
        assert probabilities(word)[name] > 0.9
