"""Particulars: what of a sentence its passage has to hold as it is: numbers, names, code."""

import re
from dataclasses import dataclass
from pathlib import Path

from agents.terms import stem, vocabulary, words

FOLDER = Path(__file__).parent
# "2: two zwei deux": after its digits, how a number is spelled.
SPELLED = {
    word: number for number, each in vocabulary(FOLDER / "numbers.txt").items() for word in each
}
HAN_DIGITS = {"\u4e24": "2"} | {
    han: str(number)
    for number, han in enumerate("\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341", 1)
}
# How the words for a unit begin, in each language.
UNITS = vocabulary(FOLDER / "units.txt")
WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
NUMBER = re.compile(
    r"(?P<before>[€$£])?\s?(?P<number>\d+(?:[.,:]\d+)*)\s?-?(?P<after>[^\W\d_]+|[%€$£])?"
)
THOUSANDS = re.compile(r"^\d{1,3}([.,]\d{3})+$")
ADDRESS = re.compile(r"https?://[^\s)>\]]+|www\.[^\s)>\]]+|[\w.+-]+@[\w-]+\.[\w.]+")
CODE = re.compile(r"`([^`\n]+)`")
# T2, maxRetries, max_retries, API: nobody translates those.
IDENTIFIER = re.compile(
    r"\b(?=\w*[^\W\d]\w*)(?:\w*_\w+|[^\W_]*[^\W\d_]\d\w*|\w+[a-z][A-Z]\w*|[A-Z]{2,}s?)\b"
)
CAPITALISED = re.compile(r"(?<=[\w,;:)\]] )[A-Z][\w'\u2019-]+")


def is_number(word: str) -> bool:
    """Whether a word is a number, in digits or spelled."""
    return word[0].isdigit() or word in SPELLED


@dataclass(frozen=True)
class Missing:
    """What a sentence names and its passage does not."""

    numbers: bool  # or addresses, or code: nothing a passage can mean without saying it
    names: bool  # or numbers in words, which may count what the passage lists


def missing(sentence: str, passage: str, *, names: bool = True) -> Missing:
    """Compare what a sentence names with its passage.

    `names`: whether words that begin with a capital are names, as they are in English.
    """
    held = passage.casefold()
    exact = [each.rstrip(".,;:") for each in ADDRESS.findall(sentence)]
    exact += [each.strip() for each in CODE.findall(sentence)]
    bare = CODE.sub(" ", ADDRESS.sub(" ", sentence))
    named = [each for each in IDENTIFIER.findall(bare) if each.casefold() not in held]
    if names:
        said = {stem(word) for word in words(passage)}
        named += [w for w in CAPITALISED.findall(bare) if not {stem(p) for p in words(w)} & said]
    spelled = {SPELLED[word] for word in words(bare) if SPELLED.get(word, "1") != "1"}
    return Missing(
        numbers=not _numbers_agree(bare, passage)
        or any(" ".join(each.casefold().split()) not in " ".join(held.split()) for each in exact),
        names=bool(named) or not spelled <= set(_measured(_in_digits(passage))),
    )


def _numbers_agree(sentence: str, passage: str) -> bool:
    """Whether each number is in the passage, and of the same unit where both name one."""
    held = _measured(_in_digits(passage))
    for number, units in _measured(sentence).items():
        if number not in held:
            return False
        there = held[number]
        if units and there and not units & there and "" not in there:
            return False
    return True


def _in_digits(text: str) -> str:
    """The text with its numbers in digits."""
    spelled = WORD.sub(lambda word: SPELLED.get(word[0].casefold(), word[0]), text)
    return "".join(HAN_DIGITS.get(letter, letter) for letter in spelled)


def _measured(text: str) -> dict[str, frozenset[str]]:
    """The numbers in digits, each with the units it has; an unknown one is empty."""
    found: dict[str, frozenset[str]] = {}
    for each in NUMBER.finditer(text):
        number = _plain(each["number"])
        unit = _unit(each["before"] or each["after"] or "")
        found[number] = found.get(number, frozenset()) | {unit}
    return {number: units - {""} if len(units) > 1 else units for number, units in found.items()}


def _plain(number: str) -> str:
    if THOUSANDS.match(number):
        return re.sub(r"[.,]", "", number).lstrip("0") or "0"
    return number.replace(",", ".").lstrip("0") or "0"


def _unit(word: str) -> str:
    written = word.casefold()
    if not written:
        return ""
    for unit, beginnings in UNITS.items():
        if any(written.startswith(beginning) for beginning in beginnings):
            return unit
    return ""
