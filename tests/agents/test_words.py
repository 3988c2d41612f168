"""The fixed sentences: each exists in each language, and what is compiled is what is written."""

import string
from pathlib import Path

import polib
import pytest

import agents
from agents.words import LOCALES, Phrase, stem, words

FOLDERS = {
    "de": "de",
    "es": "es",
    "fr": "fr",
    "pl": "pl",
    "cs": "cs",
    "ru": "ru",
    "zh": "zh_Hans",
}


def catalogue(language: str) -> Path:
    return Path(agents.__file__).parent / "locale" / FOLDERS[language] / "LC_MESSAGES" / "django.po"


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", FOLDERS)
def test_every_phrase_is_translated_and_keeps_its_placeholders(language: str) -> None:
    written = {entry.msgid: entry.msgstr for entry in polib.pofile(str(catalogue(language)))}
    missing = [phrase.name for phrase in Phrase if not written.get(phrase.value)]
    unknown = written.keys() - {phrase.value for phrase in Phrase}
    assert (missing, unknown) == ([], set())
    for english, translated in written.items():
        assert placeholders(translated) == placeholders(english)


@pytest.mark.parametrize("language", FOLDERS)
def test_compiled_catalogue_is_the_written_one(language: str) -> None:
    written = catalogue(language)
    assert polib.pofile(str(written)).to_binary() == written.with_suffix(".mo").read_bytes()


def test_there_is_a_catalogue_for_every_language_but_english() -> None:
    assert set(FOLDERS) == set(LOCALES) - {"en"}


@pytest.mark.parametrize("language", FOLDERS)
def test_a_phrase_is_said_in_the_language_asked_for(language: str) -> None:
    assert Phrase.SOURCES.in_language(language) != Phrase.SOURCES.value


def test_a_language_without_sentences_gets_english_ones() -> None:
    assert Phrase.FAREWELL.in_language("ja") == Phrase.FAREWELL.value


def test_braces_in_a_value_are_not_filled_in_again() -> None:
    assert "{x}" in Phrase.UNKNOWN_COMMAND.in_language("de", command="{x}")


@pytest.mark.parametrize(
    "forms",
    [
        ("covered", "covers", "cover"),
        ("billing", "billed", "bills"),
        ("plans", "plan"),
        ("rechnungen", "rechnung"),
        ("reembolsos", "reembolso"),
        ("faktury", "fakturę", "faktur"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_words_of_hindi_are_not_cut_at_their_vowels() -> None:
    assert words("वार्षिक अवकाश कितना है?") == ["वार्षिक", "अवकाश", "कितना", "है"]
