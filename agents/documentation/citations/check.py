"""Check: whether the passages say what an answer states, and what becomes of the rest."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from unicodedata import category, normalize

from agents.attributes import Citation, CitationStatus, SourceReference
from agents.documentation.citations.links import Addresses, harmless
from agents.documentation.citations.nearness import Nearness, are_beside
from agents.documentation.citations.particulars import Particulars, has_case
from agents.documentation.citations.statements import (
    FEWEST_WORDS,
    Piece,
    known_only,
    leading_to,
    markers,
    normalised,
    pieces,
    repeats,
    without,
    without_markers,
)
from agents.documentation.passages import with_heading
from agents.words import content_words
from knowledge.language import is_foreign, is_no_language, is_translated, prose
from knowledge.sentences import FENCE, blocks, split_sentences

# How much a statement of each status counts towards the answer's confidence.
SUPPORT: dict[CitationStatus, float] = {
    "verified": 1.0,
    "reviewed": 1.0,
    "weak": 0.75,
    "unsupported": 0.0,
}
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
WORD = re.compile(
    r"(?P<operator>[!<>=]=|(?<=\w)\*(?=\w)|(?<=\d )-(?= \d))"  # x != y, a*b, 5 - 3
    r"|(?:(?<![^\s(])[-+])?\d+(?:[.,:/-]\d+)*"  # -5, 1.5, 3-5, 10:30
    r"|[^\W\d_]+|\S"
)
# So many words of an answer may stand word for word in its passages, and with the items of lists so
# many; what comes then is a copy without end. So long are the longest quotations. Of 177 answers of
# people (MT-RAG, cloud) .99 copy no more than 165 words, and none more than 190.
LONGEST_COPY, LONGEST_LIST = 320, 600
# One way to write a dash and a question mark.
ONE_WAY = str.maketrans("\u2013\u2212\uff1f\u061f", "--??")
ASKS = ("?", "\uff1f")
# What counts, joins or leads is said, and a question states nothing: these are words.
SAID = frozenset("?%\u2030&@#/\u00a7")
MARKDOWN = frozenset("`|")


@dataclass
class CheckedAnswer:
    """An answer after the check, with what was found."""

    text: str
    citations: list[Citation] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # statements that name what no passage has
    unknown: list[str] = field(default_factory=list)  # markers of passages that were not given
    uncited: list[str] = field(default_factory=list)  # statements without a marker
    off_topic: list[str] = field(default_factory=list)  # cited ones that do not answer
    copied: int = 0  # words that stand in a passage as they are
    is_headless: bool = False  # its first statement was taken out: the rest begins in the middle

    @property
    def confidence(self) -> float:
        """Share of the statements that hold, 0 to 1; uncited and off topic ones do not."""
        statuses = {each.quote: each.citation_status for each in self.citations}
        count = len(statuses) + len(self.uncited)
        held = (SUPPORT[each] for quote, each in statuses.items() if quote not in self.off_topic)
        return sum(held) / count if count else 0.0

    def is_endless(self, piece: Piece, statuses: dict[str, CitationStatus]) -> bool:
        """Whether a statement is copied after more of them than an answer may hold; counts it."""
        if "verified" not in statuses.values():
            return False
        before = self.copied
        self.copied += len(words_of(piece.statement))
        return before >= (LONGEST_LIST if piece.kind == "item" else LONGEST_COPY)

    def findings(self) -> dict[str, Any]:
        """Return what the check took out, as JSON values."""
        return {
            "removed": self.removed,
            "removed_markers": self.unknown,
            "uncited": len(self.uncited),
            "off_topic": self.off_topic,
            "copied": self.copied,
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


class Evidence:
    """The passages of an answer, taken apart once for all that it states.

    `language` is what the answer was asked for in; empty, it may be in any.
    """

    def __init__(
        self, references: Sequence[SourceReference], question: str = "", language: str = ""
    ) -> None:
        texts = [f"{with_heading(reference)}\n\n{reference.source}" for reference in references]
        self._text = "\n\n".join(each.text for each in references)
        self._language = language
        self._passages = {each.marker: PassageText(each.text) for each in references}
        self._particulars = Particulars(texts)
        self._with_question = Particulars([*texts, question])
        self._nearness = Nearness(references)

    def statuses(self, statement: str, cited: Sequence[str]) -> dict[str, CitationStatus]:
        """Return what each of the passages that a statement cites says of it."""
        statuses = {marker: self._status(statement, marker) for marker in cited}
        # What stands there word for word names nothing that is not there, whatever it looks like.
        if "verified" in statuses.values():
            return statuses
        asks = statement.rstrip().endswith(ASKS)
        if asks or self._particulars.lacks(statement) or self._says_nothing_of(statement, cited):
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
        """Whether a statement names what no passage has nor the question, or is gibberish."""
        if self._with_question.lacks(statement) or repeats(statement):
            return True
        return is_no_language(statement) and self._nearness.is_far(statement, self._passages)

    def _says_nothing_of(self, statement: str, cited: Sequence[str]) -> bool:
        """Whether a statement is no sentence, or shares nothing with what it cites.

        What is in the language of the answer and not of the passages may be a translation; what is
        in neither is none.
        """
        if repeats(statement) or is_foreign(statement, self._text, self._language):
            return True
        claims = len(content_words(prose(statement))) >= FEWEST_WORDS
        known = [marker for marker in cited if marker in self._passages]
        return (
            claims
            and bool(known)
            and self._nearness.is_far(statement, known)
            and not is_translated(statement, self._text, self._language)
        )

    def _status(self, statement: str, marker: str) -> CitationStatus:
        if marker not in self._passages:
            return "unsupported"
        return "verified" if self._passages[marker].has(statement) else "weak"


def check(
    answer: str, references: Sequence[SourceReference], question: str = "", language: str = ""
) -> CheckedAnswer:
    """Check every statement of an answer; take out what does not hold.

    Out go markers of passages that were not given or that add nothing to one that has the
    statement word for word, statements that name what no passage has, questions with a marker,
    addresses that no passage holds, and what is copied beyond the length of a quotation. A
    statement without a marker gets that of the passage it comes from, and one with the marker of
    another passage as well.
    """
    known = {reference.marker: reference for reference in references}
    unknown = [marker for marker in markers(normalised(answer)) if marker not in known]
    addresses = Addresses([text for r in references for text in (r.text, r.source)])
    parts = pieces(harmless(known_only(answer, known), addresses))
    evidence = Evidence(references, question, language)
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
        if checked.is_endless(piece, statuses):
            dropped.append(piece)
            continue
        decisive = _decisive(statuses)
        for marker in statuses.keys() - decisive.keys():
            piece.text = piece.text.replace(f"[{marker}]", "", 1)
        checked.citations += [
            citation(known[marker], piece.statement, status) for marker, status in decisive.items()
        ]
        if not statuses and piece.claims:
            checked.uncited.append(piece.statement)
    checked.is_headless = next((each in dropped for each in parts if each.claims), False)
    announcing = [*leading_to(parts, dropped)]
    checked.citations = left_out(checked.citations, announcing)
    checked.text = without(parts, dropped + announcing).strip()
    checked.off_topic = off_topic(question, checked.citations)
    if checked.citations and len(checked.off_topic) == len({e.quote for e in checked.citations}):
        return CheckedAnswer("", removed=[*checked.removed, *checked.off_topic], unknown=unknown)
    return checked


def left_out(citations: Iterable[Citation], dropped: Iterable[Piece]) -> list[Citation]:
    """Return the citations but for those of dropped pieces."""
    statements = {each.statement for each in dropped}
    return [each for each in citations if each.quote not in statements]


def off_topic(question: str, citations: Iterable[Citation]) -> list[str]:
    """Return the statements that are not about what is asked.

    A step or a condition need not be near the question while its passage is: of the statements of
    one passage all are off topic, or none.
    """
    by_passage: dict[str, list[str]] = {}
    for each in citations:
        by_passage.setdefault(each.marker, []).append(each.quote)
    beside = [quotes for quotes in by_passage.values() if are_beside(question, quotes)]
    on_topic = {quote for quotes in by_passage.values() if quotes not in beside for quote in quotes}
    return list(dict.fromkeys(q for quotes in beside for q in quotes if q not in on_topic))


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
    for cased, run in groupby(letters, has_case):
        together = "".join(run)
        yield from [together] if cased else together
