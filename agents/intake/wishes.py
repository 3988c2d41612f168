"""Wishes: how the user wants to be answered, now or from now on."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from agents.words import language_named_in, terms
from knowledge.sentences import split_message

FOLDER = Path(__file__).parent
with (FOLDER / "wishes.toml").open("rb") as file:
    EXPRESSIONS: dict[str, dict[str, list[str]]] = tomllib.load(file)

NUMBERS = {digit: "|".join(words) for digit, words in EXPRESSIONS["number"].items()}
ANY_NUMBER = rf"(\d+|{'|'.join(NUMBERS.values())})"
LONGEST_FACT = 200
# A wish of more words than this says more than the form found in it.
FEW_WORDS = 4


def _compiled(entries: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(entries).replace("{number}", ANY_NUMBER), re.IGNORECASE)


def _compiled_all(name: str) -> re.Pattern[str]:
    return _compiled([entry for entries in EXPRESSIONS[name].values() for entry in entries])


FORMS = {form: _compiled(entries) for form, entries in EXPRESSIONS["form"].items()}
LASTING = _compiled_all("standing")
ANSWER_IN = _compiled_all("answer_in")
OWN_LANGUAGE = _compiled_all("own_language")
SEVERAL, QUANTITY = _compiled_all("several"), _compiled_all("quantity")
# What wishes are about, where several are about the same: the newest one holds.
SUBJECT = {
    **dict.fromkeys(("lines", "sentences", "brief", "detailed"), "length"),
    **dict.fromkeys(("list", "steps"), "layout"),
}
LANGUAGE = "language"


def notes(text: str) -> list[str]:
    """How the answer is wanted: "2 lines", "brief", "list" and so on, each form once."""
    forms = []
    for form, pattern in FORMS.items():
        if match := pattern.search(text):
            number = next((group for group in match.groups() if group), "")
            forms.append(f"{_digits(number)} {form}".strip())
    # Two lines are brief enough: what is exact replaces what is not.
    exact = any(note[0].isdigit() for note in forms)
    return [note for note in forms if not (exact and note == "brief")]


def beyond_form(wishes: Sequence[str]) -> list[str]:
    """The wishes for something that has to stand in the documents: an example, a comparison."""
    return [each for each in wishes if each.split()[-1:] == ["example"] or not notes(each)]


def asks_several(question: str) -> bool:
    """Whether an English question compares, collects, or has more than one part."""
    return SEVERAL.search(question) is not None


def asks_number(question: str) -> bool:
    """Whether an English question is answered with a number."""
    return QUANTITY.search(question) is not None


def without_wishes(text: str) -> str:
    """The message without the words that say how the answer is wanted."""
    for pattern in (LASTING, ANSWER_IN, OWN_LANGUAGE, *FORMS.values()):
        text = pattern.sub(" ", text)
    return text


def without_standing_wishes(text: str) -> str:
    """The message without the sentences that only say how, or in what language, to answer."""
    sentences = split_message(text)
    kept = [each for each in sentences if not _is_standing_wish(each)]
    return text if len(kept) == len(sentences) else " ".join(kept)


def _is_standing_wish(sentence: str) -> bool:
    is_wish = lasting(sentence) or answer_language(sentence) is not None
    return bool(is_wish) and not terms(without_wishes(sentence))


def in_known_words(wishes: Sequence[str]) -> list[str]:
    """The wishes in the words of `notes`, those it knows first; what says more stays beside it."""
    more = [note for note in wishes if not notes(note) or len(note.split()) > FEW_WORDS]
    return list(dict.fromkeys([*notes("; ".join(wishes)), *more]))


def _digits(number: str) -> str:
    for digit, words in NUMBERS.items():
        if re.fullmatch(words, number, re.IGNORECASE):
            return digit
    return number


def lasting(text: str) -> list[str]:
    """The wish to be kept in mind from now on, in the user's own words; at most one."""
    is_wish = LASTING.search(text) and (notes(text) or answer_language(text))
    return [" ".join(text.split())[:LONGEST_FACT]] if is_wish else []


def in_force(wishes: Sequence[str], facts: Sequence[str]) -> list[str]:
    """The wishes for this answer, and those among the facts that they say nothing against."""
    subjects = _subjects(wishes)
    known = [note for fact in facts for note in notes(fact)]
    return list(dict.fromkeys([*wishes, *(note for note in known if _subjects([note]) - subjects)]))


def outdated(message: str, facts: Sequence[str]) -> list[str]:
    """The facts that wish otherwise about what `message` has a lasting wish for."""
    subjects = _all_subjects(message)
    is_lasting = LASTING.search(message) or LANGUAGE in subjects
    return [
        fact for fact in facts if is_lasting and fact != message and _all_subjects(fact) & subjects
    ]


def _all_subjects(text: str) -> set[str]:
    about_language = answer_language(text) is not None
    return _subjects(notes(text)) | ({LANGUAGE} if about_language else set())


def _subjects(wishes: Sequence[str]) -> set[str]:
    """What the wishes are about; the form itself where no other is about the same."""
    forms = [note.split()[-1] for note in wishes if note.split()]
    return {SUBJECT.get(form, form) for form in forms}


def answer_language(text: str) -> str | None:
    """The language the user asks to be answered in; empty for the one of each message.

    None when no language is asked for.
    """
    if OWN_LANGUAGE.search(text):
        return ""
    for match in ANSWER_IN.finditer(text):
        if language := language_named_in(next(group for group in match.groups() if group)):
            return language
    return None
