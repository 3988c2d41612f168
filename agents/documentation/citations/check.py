"""Check: whether the passages say what an answer states, and what becomes of the rest."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, takewhile
from typing import Any
from unicodedata import category, decimal, normalize

from agents.attributes import Citation, CitationStatus, SourceReference
from agents.documentation.citations.links import Addresses, harmless
from agents.documentation.citations.markers import known_only, markers, normalised, without_markers
from agents.documentation.citations.nearness import Nearness
from agents.documentation.citations.statements import Piece, pieces, without
from agents.documentation.passages import with_heading
from knowledge.sentences import FENCE, blocks, split_sentences

# How much a statement of each status counts towards the answer's confidence.
SUPPORT: dict[CitationStatus, float] = {
    "verified": 1.0,
    "reviewed": 1.0,
    "weak": 0.75,
    "unsupported": 0.0,
}
# Of 26,400 pairs of one question in two of twelve languages (XQuAD, 200 questions) 1.4 % are called
# unsupported, and 7 % of those with a number: spelled there, or "XXXIII". How that is for claims
# beside their passages, `evaluate citations` measures.
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
WORD = re.compile(
    r"(?P<operator>[!<>=]=|(?<=\w)\*(?=\w)|(?<=\d )-(?= \d))"  # x != y, a*b, 5 - 3
    r"|(?:(?<![^\s(])[-+])?\d+(?:[.,:/-]\d+)*"  # -5, 1.5, 3-5, 10:30
    r"|[^\W\d_]+|\S"
)
# One way to write a dash and a question mark.
ONE_WAY = str.maketrans("\u2013\u2212\uff1f\u061f", "--??")
# What counts, joins or leads is said, and a question states nothing: these are words.
SAID = frozenset("?%\u2030&@#/\u00a7")
MARKDOWN = frozenset("`|")
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


@dataclass
class CheckedAnswer:
    """An answer after the check, with what was found."""

    text: str
    citations: list[Citation] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # statements that name what no passage has
    unknown: list[str] = field(default_factory=list)  # markers of passages that were not given
    uncited: list[str] = field(default_factory=list)  # statements without a marker

    @property
    def confidence(self) -> float:
        """Share of the statements that hold, 0 to 1; an uncited one does not."""
        statuses = {each.quote: each.citation_status for each in self.citations}
        count = len(statuses) + len(self.uncited)
        return sum(SUPPORT[each] for each in statuses.values()) / count if count else 0.0

    def findings(self) -> dict[str, Any]:
        """Return what the check took out, as JSON values."""
        return {
            "removed": self.removed,
            "removed_markers": self.unknown,
            "uncited": len(self.uncited),
        }


class PassageText:
    """A passage as its words, and the places where a sentence begins or ends."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = []
        self._edges = [0]
        for sentence in sentences(text):
            self._words += words_of(sentence)
            self._edges.append(len(self._words))

    def has(self, statement: str) -> bool:
        """Whether it has a statement word for word, and nothing of a sentence was left out."""
        words = [word for sentence in sentences(statement) for word in words_of(sentence)]
        return bool(words) and any(
            begin + len(words) in self._edges and self._words[begin : begin + len(words)] == words
            for begin in self._edges
        )


class Particulars:
    """The numbers, names, code and addresses of some texts, and what of them a statement adds.

    `beside` are further texts that tell what language they are in and how it writes names.
    """

    def __init__(self, texts: Iterable[str], beside: Iterable[str] = ()) -> None:
        self._text = "\n\n".join(texts)
        self._language = "\n\n".join([self._text, *beside])
        self._plain = " ".join(self._text.casefold().split())

    def lacks(self, statement: str) -> list[str]:
        """Return the numbers, names, code and addresses of a statement that no text has."""
        text = without_markers(statement)
        code, plain = CODE.findall(text), _cased(CODE.sub(" ", text))
        exact = [each.rstrip(TRAILING) for each in ADDRESS.findall(plain)] + code
        plain = VERSION.sub("", ADDRESS.sub(" ", plain))
        numbers = NUMBER.findall(IDENTIFIER.sub(" ", plain))
        return [
            *(each for each in exact if " ".join(each.casefold().split()) not in self._plain),
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
        numbers = NUMBER.findall(VERSION.sub("", _cased(self._text)))
        parts = (part for each in numbers for part in _parts(each))
        return frozenset([*map(_value, numbers), *parts])

    @cached_property
    def _marks_names(self) -> bool:
        """Whether a capital within a sentence tells a name from a word."""
        later_words: list[str] = WITHIN.findall(self._language)
        capitals = [each for each in later_words if each[0].isupper()]
        return len(capitals) <= MANY_CAPITALS * len(later_words)

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


class Evidence:
    """The passages of an answer, taken apart once for all that it states."""

    def __init__(self, references: Sequence[SourceReference], question: str = "") -> None:
        texts = [f"{with_heading(reference)}\n\n{reference.source}" for reference in references]
        self._passages = {each.marker: PassageText(each.text) for each in references}
        self._particulars = Particulars(texts)
        self._with_question = Particulars([*texts, question])
        self._nearness = Nearness(references)

    def statuses(self, statement: str, cited: Sequence[str]) -> dict[str, CitationStatus]:
        """Return what each of the passages that a statement cites says of it."""
        statuses = {marker: self._status(statement, marker) for marker in cited}
        # What stands there word for word names nothing that is not there, whatever it looks like.
        if "verified" not in statuses.values() and self._particulars.lacks(statement):
            return dict.fromkeys(cited, "unsupported")
        return statuses

    def source(self, statement: str, cited: Sequence[str] = ()) -> str:
        """Return the marker of the passage a statement comes from; empty when no passage is near.

        That is the first which has it word for word, else the nearest; beside passages that are
        `cited` already, only one that is clearly better.
        """
        having = [marker for marker, each in self._passages.items() if each.has(statement)]
        if having:
            return "" if set(having) & set(cited) else having[0]
        if self._particulars.lacks(statement):
            return ""
        if cited:
            return self._nearness.better_source(statement, cited)
        return self._nearness.source(statement)

    def invented(self, statement: str) -> bool:
        """Whether a statement names what is neither in a passage nor in the question."""
        return bool(self._with_question.lacks(statement))

    def _status(self, statement: str, marker: str) -> CitationStatus:
        if marker not in self._passages:
            return "unsupported"
        return "verified" if self._passages[marker].has(statement) else "weak"


def check(answer: str, references: Sequence[SourceReference], question: str = "") -> CheckedAnswer:
    """Check every statement of an answer; take out what does not hold.

    Out go markers of passages that were not given or that add nothing to one that has the
    statement word for word, statements that name what no passage has, and addresses that no
    passage holds. A statement without a marker gets that of the passage it comes from, and one with
    the marker of another passage as well.
    """
    known = {reference.marker: reference for reference in references}
    unknown = [marker for marker in markers(normalised(answer)) if marker not in known]
    addresses = Addresses([text for r in references for text in (r.text, r.source)])
    parts = pieces(harmless(known_only(answer, known), addresses))
    evidence = Evidence(references, question)
    checked = CheckedAnswer("", unknown=unknown)
    dropped: list[Piece] = []
    for place, piece in enumerate(parts):
        if not piece.kind:
            continue
        cited = _cited_markers(parts, place, evidence)
        statuses = evidence.statuses(piece.statement, cited)
        if _is_taken_out(piece, statuses, evidence):
            dropped.append(piece)
            checked.removed.append(piece.statement)
            continue
        decisive = _decisive(statuses)
        for marker in statuses.keys() - decisive.keys():
            piece.text = piece.text.replace(f"[{marker}]", "", 1)
        checked.citations += [
            citation(known[marker], piece.statement, status) for marker, status in decisive.items()
        ]
        if not statuses and piece.claims:
            checked.uncited.append(piece.statement)
    checked.text = without(parts, dropped).strip()
    return checked


def _cited_markers(parts: Sequence[Piece], place: int, evidence: Evidence) -> list[str]:
    """The markers of a piece, after it was given that of its source where it has none or another.

    Code without any has those of the sentence that leads to it.
    """
    piece = parts[place]
    if piece.kind == "code":
        led_by = next((each for each in reversed(parts[:place]) if each.kind), piece)
        if carried := piece.markers or led_by.markers:
            return carried
    if piece.claims and (marker := evidence.source(piece.statement, piece.markers)):
        piece.cite(marker)
    return piece.markers


def _is_taken_out(piece: Piece, statuses: dict[str, CitationStatus], evidence: Evidence) -> bool:
    """Whether a piece is taken out: it names what is nowhere. Uncited, it may repeat the question.

    All of the passages of one statement say "unsupported" of it, or none.
    """
    return "unsupported" in statuses.values() if statuses else evidence.invented(piece.statement)


def _decisive(statuses: dict[str, CitationStatus]) -> dict[str, CitationStatus]:
    """The passages that have the statement word for word; all of them where none has."""
    return {
        marker: status for marker, status in statuses.items() if status == "verified"
    } or statuses


def citation(reference: SourceReference, quote: str, status: CitationStatus) -> Citation:
    """Return the citation of a passage for one statement of an answer."""
    shared = reference.model_dump(exclude={"text"})
    return Citation(quote=quote, citation_status=status, **shared)


def support(statement: str, passage: str) -> CitationStatus:
    """Say how far a single passage supports a statement."""
    if PassageText(passage).has(statement):
        return "verified"
    return "unsupported" if Particulars([passage]).lacks(statement) else "weak"


def sentences(text: str) -> Iterator[str]:
    """Yield what stands for itself in a Markdown text: sentences, rows and lines of code."""
    for kind, block in blocks(text):
        if kind == "code":
            yield from (line for line in block.splitlines() if not FENCE.match(line))
        else:
            yield from [block] if kind == "row" else split_sentences(block)


def words_of(text: str) -> list[str]:
    """The words of a text without case, punctuation, Markdown's marks and markers.

    A letter without case is a word by itself: many scripts that have none use no spaces. Numbers
    keep their signs and separators, and symbols such as "<" and "%" and operators stay.
    """
    words: list[str] = []
    plain = normalize("NFC", LINK.sub(r"\1", without_markers(text))).casefold()
    for match in WORD.finditer(plain.translate(ONE_WAY)):
        part = match.group()
        kind = category(part[0])[0]
        if match["operator"]:
            words.append(part)
        elif part[0].isalpha():
            words.extend(_words_in(part))
        elif kind == "M" and words:
            words[-1] += part
        elif part[-1].isdecimal() or part in SAID or (kind in "NS" and part not in MARKDOWN):
            words.append(part)
    return words


def within(part: str, whole: str) -> bool:
    """Whether the words of one text stand together in another."""
    return f" {' '.join(words_of(part))} " in f" {' '.join(words_of(whole))} "


def _words_in(letters: str) -> Iterator[str]:
    """Runs of letters that have case, and each letter by itself that has none."""
    for cased, run in groupby(letters, _has_case):
        together = "".join(run)
        yield from [together] if cased else together


def _has_case(letter: str) -> bool:
    return letter.upper() != letter.lower()


def _cased(text: str) -> str:
    """The text without the letters that have no case: they stand close to names and numbers."""
    return "".join("|" if each.isalpha() and not _has_case(each) else each for each in text)


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
