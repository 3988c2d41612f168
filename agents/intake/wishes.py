"""Wishes: how the user wants to be answered, now or from now on."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from agents.words import named_in

FOLDER = Path(__file__).parent
with (FOLDER / "wishes.toml").open("rb") as file:
    SAID: dict[str, dict[str, list[str]]] = tomllib.load(file)

NUMBERS = {digit: "|".join(words) for digit, words in SAID["number"].items()}
ANY_NUMBER = rf"(\d+|{'|'.join(NUMBERS.values())})"
LONGEST_FACT = 200
# A wish of more words than this says more than the form found in it.
FEW_WORDS = 4


def _compiled(entries: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(entries).replace("{number}", ANY_NUMBER), re.IGNORECASE)


def _compiled_all(name: str) -> re.Pattern[str]:
    return _compiled([entry for entries in SAID[name].values() for entry in entries])


FORMS = {form: _compiled(entries) for form, entries in SAID["form"].items()}
STANDING = _compiled_all("standing")
ANSWER_IN = _compiled_all("answer_in")
OWN_LANGUAGE = _compiled_all("own_language")
# What wishes are about, where several are about the same: the newest one holds.
MATTER = {
    **dict.fromkeys(("lines", "sentences", "brief", "detailed"), "length"),
    **dict.fromkeys(("list", "steps"), "layout"),
}
LANGUAGE = "language"


def notes(text: str) -> list[str]:
    """How the answer is wanted: "2 lines", "brief", "list" and so on, each form once."""
    found = []
    for form, uttered in FORMS.items():
        if match := uttered.search(text):
            number = next((group for group in match.groups() if group), "")
            found.append(f"{_digits(number)} {form}".strip())
    # Two lines are brief enough: what is exact replaces what is not.
    exact = any(note[0].isdigit() for note in found)
    return [note for note in found if not (exact and note == "brief")]


def without(text: str) -> str:
    """The message without the words that say how the answer is wanted."""
    for pattern in (STANDING, ANSWER_IN, OWN_LANGUAGE, *FORMS.values()):
        text = pattern.sub(" ", text)
    return text


def in_known_words(said: Sequence[str]) -> list[str]:
    """The wishes in the words of `notes`, those it knows first; what says more stays beside it."""
    more = [note for note in said if not notes(note) or len(note.split()) > FEW_WORDS]
    return list(dict.fromkeys([*notes("; ".join(said)), *more]))


def _digits(number: str) -> str:
    for digit, words in NUMBERS.items():
        if re.fullmatch(words, number, re.IGNORECASE):
            return digit
    return number


def standing(text: str) -> list[str]:
    """The wish to be kept in mind from now on, in the user's own words; at most one."""
    wished = STANDING.search(text) and (notes(text) or answer_language(text))
    return [" ".join(text.split())[:LONGEST_FACT]] if wished else []


def holding(said: Sequence[str], facts: Sequence[str]) -> list[str]:
    """The wishes for this answer, and those among the facts that they say nothing against."""
    spoken = _matters(said)
    known = [note for fact in facts for note in notes(fact)]
    return list(dict.fromkeys([*said, *(note for note in known if _matters([note]) - spoken)]))


def outdated(said: str, facts: Sequence[str]) -> list[str]:
    """The facts that wish otherwise about what `said` has a lasting wish for."""
    spoken = _all_matters(said)
    lasting = STANDING.search(said) or LANGUAGE in spoken
    return [fact for fact in facts if lasting and fact != said and _all_matters(fact) & spoken]


def _all_matters(text: str) -> set[str]:
    about_language = answer_language(text) is not None
    return _matters(notes(text)) | ({LANGUAGE} if about_language else set())


def _matters(said: Sequence[str]) -> set[str]:
    """What the wishes are about; the form itself where no other is about the same."""
    forms = [note.split()[-1] for note in said if note.split()]
    return {MATTER.get(form, form) for form in forms}


def answer_language(text: str) -> str | None:
    """The language the user asks to be answered in; empty for the one of each message.

    None when no language is asked for.
    """
    if OWN_LANGUAGE.search(text):
        return ""
    for match in ANSWER_IN.finditer(text):
        if language := named_in(next(group for group in match.groups() if group)):
            return language
    return None
