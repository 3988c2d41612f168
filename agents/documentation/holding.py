"""Holding: whether a passage says a sentence, in one of its statements and in its words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agents.documentation.particulars import missing
from agents.documentation.quantities import without_quantities
from agents.terms import content_words, stem, vocabulary, words
from knowledge.sentences import blocks, in_sentences

FOLDER = Path(__file__).parent
NEGATIONS = frozenset().union(*vocabulary(FOLDER / "negations.txt").values())
BINDING = {
    name: [f" {each.replace('_', ' ')} " for each in forms]
    for name, forms in vocabulary(FOLDER / "binding.txt").items()
}
# A statement that has one of these says less without it.
LIMITING = frozenset({"only", "except"})
HEADING = re.compile(r"^[ \t]{0,3}#{1,6}\s.*$", re.MULTILINE)
LEADING = (":", "\uff1a")
# Between the clauses of a sentence; what has fewer terms is none.
BETWEEN = re.compile(r"(?:[,;]\s+(?:(?:and|und|y|e|et|и)\s)?|\s(?:and|und|y|e|et|и)\s)")
CLAUSE = 2
# What a statement leaves out because its heading says it is no more than the rest of a sentence.
OWN_TERMS = 0.75
# "descal" and "descaler": the one begins with the other and is not much shorter.
STEM, ENDING = 5, 3


@dataclass(frozen=True)
class Statement:
    """A sentence, list item, row or code block of a passage."""

    text: str
    headings: str = ""  # those above it
    lead: str = ""  # the sentence that leads to it, of an item

    @cached_property
    def whole(self) -> str:
        """The text behind what leads to it."""
        return f"{self.lead} {self.text}".strip()

    @cached_property
    def said(self) -> str:
        """Its words, with a space before and behind each."""
        return spaced(self.text)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its own terms; quantities aside."""
        return terms(self.whole)

    @cached_property
    def above(self) -> frozenset[str]:
        """The terms of its headings."""
        return terms(self.headings)

    @cached_property
    def begins(self) -> str:
        """The first of its terms; empty when it has none."""
        return next((stem(word) for word in content_words(without_quantities(self.text))), "")

    @cached_property
    def binding(self) -> frozenset[str]:
        """What binds it."""
        return binding(self.whole)

    @cached_property
    def negates(self) -> bool:
        """Whether it denies something."""
        return negates(self.whole)

    def holds(self, sentence: "Statement", *, names: bool) -> bool:
        """Whether this statement says `sentence`: all its terms, particulars and binding words."""
        wanted = sentence.terms
        own = frozenset(each for each in wanted if _among(each, self.terms))
        return (
            len(own) >= OWN_TERMS * len(wanted)
            and all(_among(each, self.above) for each in wanted - own)
            and self.agrees(sentence)
            and sentence.binding <= self.binding
            and not missing(sentence.text, f"{self.headings}\n{self.whole}", names=names).any
        )

    def agrees(self, sentence: "Statement") -> bool:
        """Whether both affirm or both deny, and no restriction was lost."""
        lost = (self.binding & LIMITING) - sentence.binding
        return self.negates == sentence.negates and not lost


def statements(passage: str) -> Iterator[Statement]:
    """Yield the statements of a passage."""
    begin, headings = 0, ""
    for heading in [*HEADING.finditer(passage), None]:
        end = heading.start() if heading else len(passage)
        yield from _under(headings, passage[begin:end])
        if heading:
            begin, headings = heading.end(), f"{headings}\n{heading[0]}"


def _under(headings: str, text: str) -> Iterator[Statement]:
    lead = ""
    for kind, block in blocks(text):
        if kind == "prose":
            found = [each for each in in_sentences(block) if each]
            lead = found[-1] if found and found[-1].endswith(LEADING) else ""
            yield from (Statement(each, headings) for each in found)
        elif block:
            yield Statement(block, headings, lead if kind == "item" else "")


def held(sentence: Statement, have: list[Statement], *, names: bool) -> bool:
    """Whether one statement holds the sentence, or each of its clauses has one that does.

    A clause after the first stands for itself where its statement begins as it does; elsewhere the
    statement may be about something else than the beginning of the sentence.
    """
    if any(each.holds(sentence, names=names) for each in have):
        return True
    first, *others = clauses(sentence)
    return bool(others) and all(
        any(
            each.holds(clause, names=names) and (clause is first or each.begins == clause.begins)
            for each in have
        )
        for clause in (first, *others)
    )


def clauses(sentence: Statement) -> list[Statement]:
    """The clauses of a sentence, each with terms enough to state something."""
    found = [Statement(each) for each in BETWEEN.split(sentence.text)]
    return found if all(len(each.terms) >= CLAUSE for each in found) else [sentence]


def word_for_word(sentence: Statement, passage: Statement, have: list[Statement]) -> bool | None:
    """Whether a passage holds the words of a sentence in their order; None when it does not.

    False when the only statements that hold them deny them or restrict them.
    """
    if sentence.said not in passage.said:
        return None
    around = [each for each in have if sentence.said in each.said]
    return not around or any(each.agrees(sentence) for each in around)


def spaced(text: str) -> str:
    """The words of a text with a space before and behind each."""
    return f" {' '.join(words(text))} "


def terms(text: str) -> frozenset[str]:
    """The stems of the content words of a text, its quantities aside."""
    return frozenset(stem(word) for word in content_words(without_quantities(text)))


def binding(text: str) -> frozenset[str]:
    """The names of what binds a text: "only", "before", "at least"."""
    said = spaced(text)
    return frozenset(name for name, forms in BINDING.items() if any(f in said for f in forms))


def negates(text: str) -> bool:
    """Whether a text denies something."""
    return any(word in NEGATIONS or word.endswith("n't") for word in words(text))


def _among(term: str, have: frozenset[str]) -> bool:
    """Whether a term is there, or a clear inflection of it."""
    return term in have or any(_inflected(*sorted((term, each), key=len)) for each in have)


def _inflected(short: str, long: str) -> bool:
    return long.startswith(short) and len(short) >= STEM and len(long) - len(short) <= ENDING
