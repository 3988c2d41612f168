"""Particulars: numbers, names, code and addresses, which a statement must have from a passage."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import takewhile
from unicodedata import decimal

from text_to_num import alpha2digit

from agents.documentation.citations.statements import without_markers
from knowledge.language import SURE, likeliest, probabilities, prose

# Of 26,400 pairs of one question in two of twelve languages (XQuAD, 200 questions) 1.3 % seem to
# lack something, and 7 % of those with a number: spelled there, or "XXXIII". How that is for claims
# beside their passages, `evaluate citations` measures.
ADDRESS = re.compile(
    r"(?:https?:)?//[^\s)>\]]+|www\.[^\s)>\]]+|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|(?<![\w.])(?:\.{1,2}|~)?(?:/[\w.-]+){2,}"  # /etc/docent
    r"|\b\w[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b"  # example.org, settings.py
)
TRAILING = ".,;:!?*_"
CODE = re.compile(r"`([^`\n]+)`")
# --force, max_retries, T2, maxRetries: nobody translates those.
IDENTIFIER = re.compile(
    r"(?<![\w-])--[^\W\d_][\w-]+|\b(?:\w*[^\W_]_[^\W_]\w*|[^\W\d_]+\d(?:[\w.-]*\w)?|\w*[a-z][A-Z]\w*)\b"
)
NUMBER = re.compile(r"\d+(?:[.,:'\u2019/\u2013-]\d+|[ \u00a0\u202f]\d{3}(?!\d))*")
THOUSANDS = re.compile(r"[1-9]\d{0,2}([.,'\u2019 \u00a0\u202f])\d{3}(?:\1\d{3})*")
DIGITS = re.compile(r"\d+")
SPELLED = frozenset({"en", "fr", "es", "pt", "de", "nl", "it"})
SMALL = 3  # of a statement's own words those up to here count nothing: "one of them", "the second"
WITHIN = re.compile(r"(?<=[\w,;)\]*\"] )[*\"(]*([^\W\d_]+)")  # words that begin no sentence
WORDS = re.compile(r"\w+")
VERSION = re.compile(r"\b[vV](?=\d)")  # as good without: v2.1
LETTERS = re.compile(r"[^\W\d_]+")
# Words with a capital are names where so much of the rest of the statement is in the passages: it
# is in their language then. Of XQuAD's questions 4 in 26,400 seem to have a name that their
# translation lacks, and 1.1 % one that 200 questions of a related language lack.
SAME_LANGUAGE = 0.4
# In German, where each noun has one, capitals begin .36 of the words within a sentence, in seven
# other languages of XQuAD .09 to .13, in 95 % of 131 manual pages less than .19.
MANY_CAPITALS = 0.25
# Two names are one with another ending where they begin alike and differ in so many letters.
ALIKE, ENDING = 4, 3


class Particulars:
    """The numbers, names, code and addresses of some texts, and what of them a statement adds.

    `beside` are further texts that tell what language they are in and how it writes names.
    """

    def __init__(self, texts: Iterable[str], beside: Iterable[str] = ()) -> None:
        texts = list(texts)
        self._text = "\n\n".join(texts)
        self._spelled = "\n\n".join(in_digits(each) for each in texts)
        # A number that a passage spells in another language cannot be told from one it lacks.
        self._is_countable = all(map(_countable, texts))
        self._language = "\n\n".join([self._text, *beside])
        self._plain = " ".join(self._text.casefold().split())

    def lacks(self, statement: str) -> list[str]:
        """Return the numbers, names, code and addresses of a statement that no text has."""
        text = without_markers(statement)
        code, plain = CODE.findall(text), _cased(CODE.sub(" ", text))
        exact = [each.rstrip(TRAILING) for each in ADDRESS.findall(plain)] + code
        plain = VERSION.sub("", ADDRESS.sub(" ", plain))
        words = IDENTIFIER.sub(" ", plain)
        numbers = NUMBER.findall(in_digits(words, SMALL) if self._is_countable else words)
        return [
            *(each for each in exact if not self._has_exactly(each)),
            *(each for each in IDENTIFIER.findall(plain) if not self._has_identifier(each)),
            *(each for each in numbers if not self._has_number(each)),
            *(each for each in self._names(IDENTIFIER.sub(" ", plain)) if not self._has_name(each)),
        ]

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(WORDS.findall(_cased(self._text).casefold()))

    @cached_property
    def _words_of_language(self) -> frozenset[str]:
        return frozenset(WORDS.findall(_cased(self._language).casefold()))

    @cached_property
    def _numbers(self) -> frozenset[str]:
        plain = VERSION.sub("", _cased(f"{self._text}\n{self._spelled}"))
        numbers = NUMBER.findall(plain)
        parts = (part for each in numbers for part in _parts(each))
        return frozenset([*map(_value, numbers), *parts])

    @cached_property
    def _marks_names(self) -> bool:
        """Whether a capital within a sentence tells a name from a word."""
        later_words: list[str] = WITHIN.findall(self._language)
        capitals = [each for each in later_words if each[0].isupper()]
        return len(capitals) <= MANY_CAPITALS * len(later_words)

    def _has_exactly(self, code: str) -> bool:
        """Whether a text has code or an address; a setting and its value may stand apart."""
        name, sign, value = " ".join(code.casefold().split()).partition("=")
        if name + sign + value in self._plain:
            return True
        words = WORDS.findall(value)
        return bool(sign and words) and {name, *words} <= self._words

    def _has_identifier(self, name: str) -> bool:
        folded = name.casefold()
        if not WORDS.fullmatch(folded):
            return folded in self._plain
        return folded in self._words or any(_inflected(folded, word) for word in self._words)

    def _has_number(self, number: str) -> bool:
        parts = _parts(number)
        return _value(number) in self._numbers or (bool(parts) and self._numbers.issuperset(parts))

    def _has_name(self, name: str) -> bool:
        return any(_is_alike(name, word) for word in self._words)

    def _names(self, plain: str) -> list[str]:
        lower_words = [each for each in LETTERS.findall(plain) if each.islower()]
        known = self._words_of_language
        shared = sum(each in known for each in lower_words)
        if not lower_words or shared < SAME_LANGUAGE * len(lower_words) or not self._marks_names:
            return []
        return [each for each in WITHIN.findall(plain) if each[0].isupper() and len(each) > 1]


def in_digits(text: str, least: int = 0) -> str:
    """The text with the numbers that it spells in digits, where text2num knows its language.

    Those up to `least` stay words where they stand alone.
    """
    language = _countable(text)
    return str(alpha2digit(text, language, threshold=least)) if language else text


def _countable(text: str) -> str:
    """The language of a text if it is told surely and text2num knows it; else empty."""
    chances = probabilities(prose(text))
    best = likeliest(chances)
    return best if best in SPELLED and chances.get(best, 0) >= SURE else ""


def has_case(letter: str) -> bool:
    """Whether a letter is written large and small."""
    return letter.upper() != letter.lower()


def _cased(text: str) -> str:
    """The text without the letters that have no case: they stand close to names and numbers."""
    return "".join("|" if each.isalpha() and not has_case(each) else each for each in text)


def _inflected(name: str, word: str) -> bool:
    """Whether one is the other with an ending."""
    short, long = sorted((name, word), key=len)
    tail = long[len(short) :]
    ending = tail == "s" or (len(short) >= ALIKE and len(tail) <= ALIKE and tail.isalpha())
    return ending and long.startswith(short)


def _is_alike(name: str, word: str) -> bool:
    """Whether a name is the word, perhaps in another case of its grammar."""
    folded = name.casefold()
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(folded, word, strict=False))
    same_letters = sum(1 for _ in pairs)
    other_letters = max(len(folded), len(word)) - same_letters
    differs_little = same_letters >= ALIKE and other_letters <= ENDING
    return not other_letters or differs_little or _inflected(folded, word)


def _value(number: str) -> str:
    """A number as it compares: without thousands' separators and needless zeros."""
    digits = "".join(str(decimal(each, each)) for each in number)
    if THOUSANDS.fullmatch(digits):
        return "".join(DIGITS.findall(digits))
    integer, point, fraction = re.sub("[,:]", ".", digits).partition(".")
    if point and fraction.isdecimal():
        return f"{integer.lstrip('0') or '0'}.{fraction.rstrip('0')}".rstrip(".")
    return digits.lstrip("0") or "0"


def _parts(number: str) -> list[str]:
    """The numbers in a date, range or row of digits, in whatever order; none of a plain number."""
    parts = DIGITS.findall(number)
    compound = len(parts) > 2 or re.search(r"[/ \u00a0\u202f\u2013-]", number)
    return [_value(each) for each in parts] if compound else []
