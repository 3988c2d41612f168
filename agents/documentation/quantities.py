"""Quantities: the numbers of a text with what they count, in digits or spelled."""

import re
from pathlib import Path

from agents.terms import HAN, vocabulary

FOLDER = Path(__file__).parent
# "2: two zwei deux": after its digits, how a number is spelled.
SPELLED = {
    word: number for number, each in vocabulary(FOLDER / "numbers.txt").items() for word in each
}
HAN_DIGITS = {"\u4e24": "2"} | {
    han: str(number)
    for number, han in enumerate("\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341", 1)
}
UNIT = {word: unit for unit, each in vocabulary(FOLDER / "units.txt").items() for word in each}
WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
NUMBER = re.compile(
    r"(?P<before>[€$£])?\s?(?P<number>\d+(?:[.,:]\d+)*)\s?-?(?P<after>[^\W\d_]+|[%€$£°])?"
)
THOUSANDS = re.compile(r"^\d{1,3}([.,]\d{3})+$")
TIMES = {"hundred": 100, "thousand": 1000}
MULTIPLE = re.compile(rf"\b(\w+) ({'|'.join(TIMES)})\b", re.IGNORECASE)
# In many languages the word for it is also an article.
ONE = "1"


def is_number(word: str) -> bool:
    """Whether a word is a number, in digits or spelled."""
    return word[0].isdigit() or word in SPELLED


def agree(sentence: str, passage: str, *, one: bool = False) -> bool:
    """Whether each number is in the passage, and of the same unit where both name one.

    A number in words is one of these when a unit follows it; others may count what a passage lists.
    `one`: also the number 1 in words, for which a passage may well say "a".
    """
    held = _measured(in_digits(passage))
    for number, units in _required(sentence, one=one).items():
        if number not in held:
            return False
        there = held[number] - {""}
        if there and units - {""} - there:
            return False
    return True


def counted(text: str) -> frozenset[str]:
    """The numbers of a text, in digits."""
    return frozenset(_measured(in_digits(text)))


def in_digits(text: str) -> str:
    """The text with its numbers in digits."""
    written = WORD.sub(_digits, MULTIPLE.sub(_product, text))
    return "".join(HAN_DIGITS.get(letter, letter) for letter in written)


def without_quantities(text: str) -> str:
    """The text without its numbers and their units; other words behind a number stay."""

    def rest(found: re.Match[str]) -> str:
        return f" {found['after'] or ''} " if not _unit(found["after"] or "") else " "

    return NUMBER.sub(rest, in_digits(text))


def _required(text: str, *, one: bool) -> dict[str, frozenset[str]]:
    spelled = _measured(in_digits(text)).items()
    units = {number: each for number, each in spelled if each - {""} and (one or number != ONE)}
    return _measured(text) | units


def _measured(text: str) -> dict[str, frozenset[str]]:
    """The numbers in digits, each with the units it has; an unknown one is empty."""
    found: dict[str, frozenset[str]] = {}
    for each in NUMBER.finditer(text):
        number = _plain(each["number"])
        unit = _unit(each["before"] or each["after"] or "")
        found[number] = found.get(number, frozenset()) | {unit}
    return found


def _digits(found: re.Match[str]) -> str:
    """A word in digits where it is a number or, as in "five-second", begins with one."""
    word = found[0].casefold()
    head, _, tail = word.partition("-")
    if word in SPELLED or head not in SPELLED:
        return SPELLED.get(word, found[0])
    if tail in SPELLED:
        return str(int(SPELLED[head]) + int(SPELLED[tail]))
    return f"{SPELLED[head]}-{tail}" if tail else SPELLED[head]


def _product(found: re.Match[str]) -> str:
    many = SPELLED.get(found[1].casefold(), found[1])
    return str(int(many) * TIMES[found[2].casefold()]) if many.isdecimal() else found[0]


def _plain(number: str) -> str:
    if THOUSANDS.match(number):
        return re.sub(r"[.,]", "", number).lstrip("0") or "0"
    return number.replace(",", ".").lstrip("0") or "0"


def _unit(word: str) -> str:
    written = word.casefold()
    if not HAN.match(written):
        return UNIT.get(written, "")
    return next((unit for word, unit in UNIT.items() if written.startswith(word)), "")
