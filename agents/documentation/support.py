"""Support: whether a passage says what is cited from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from agents.documentation.citing import without_markers
from agents.documentation.particulars import is_number, missing
from agents.terms import FUNCTION_WORDS, HAN, terms, vocabulary, words
from knowledge.embedding import encode
from knowledge.errors import EmbeddingUnavailable
from knowledge.sentences import split

CitationStatus = Literal["verified", "weak", "unsupported"]

# A sentence is scored by the share of its terms in the passage, plus so much of its cosine with
# the nearest statement there. Chosen with all-MiniLM-L6-v2 on 175 claims of WiCE beside passages of
# up to 2,400 characters. On the 174 others: of claims without support 95 % are unsupported (by
# 75 % of the terms alone: 100 %), of supported ones 14 % (38 %), and 91 % (82 %) of what is called
# unsupported is not fully supported. Of what is verified 77 % is wholly supported, the rest partly,
# and 48 % of the supported claims are verified (word for word: 2 %).
COSINE = 0.75
WEAK, VERIFIED = 0.95, 1.2
# What is verified has this share of its terms in the passage, however near it is; without an
# embedding, what is weak.
MOST_TERMS = 0.75
# This share of the terms in one statement that says the opposite, and so much more than in any
# that says the same, is a contradiction.
ALIKE, MORE_ALIKE = 0.6, 0.25
# all-MiniLM-L6-v2 was trained on English. Of 100 questions in German, Spanish or Romanian half come
# nearer than 0.33 to their English translation, and 99 of 100 others stay under 0.3; Russian and
# Chinese ones tell it from the others hardly better than chance.
TRANSLATED = 0.5
NEGATIONS = frozenset().union(*vocabulary(Path(__file__).parent / "negations.txt").values())


@dataclass(frozen=True)
class Reading:
    """A sentence beside a passage: what the words alone say of it."""

    settled: CitationStatus | None  # no embedding is needed
    coverage: float = 0.0  # share of the sentence's terms in the passage
    foreign: bool = False  # the two are written in different languages
    doubtful: bool = False  # something named or negated differs: never verified


def support(sentence: str, passage: str) -> CitationStatus:
    """Whether `passage` says `sentence`: it does, it may well, or it does not."""
    return supports([(sentence, passage)])[0]


def supports(pairs: Sequence[tuple[str, str]]) -> list[CitationStatus]:
    """Say of each (sentence, passage) how far the passage supports the sentence.

    "verified": word for word, or most of it with every number, unit, name and negation;
    "unsupported": too little of it, a number, address or code that the passage does not hold, or
    its opposite; "weak": what is between. Across languages words do not compare: there the numbers,
    addresses and code decide, and what the embedding cannot vouch for is weak.
    """
    readings = [_read(without_markers(sentence), passage) for sentence, passage in pairs]
    open_ = [place for place, each in enumerate(readings) if each.settled is None]
    cosines = _nearest([pairs[place] for place in open_])
    found = dict(zip(open_, cosines, strict=True))
    return [each.settled or _decided(each, found[place]) for place, each in enumerate(readings)]


def _read(sentence: str, passage: str) -> Reading:
    said = " ".join(words(sentence))
    if not said:
        return Reading("unsupported")
    statements = split(passage)
    if f" {said} " in f" {' '.join(words(without_markers(passage)))} ":
        opposed = not _negates(sentence) and _only_negated(said, statements)
        return Reading("weak" if opposed else "verified")
    spoken = _language(sentence)
    foreign = bool({spoken, _language(passage)} - {""}) and spoken != _language(passage)
    lacks = missing(sentence, passage, names=spoken == "en" and not foreign)
    if lacks.numbers:
        return Reading("unsupported")
    wanted = set(terms(sentence))
    if not wanted:
        return Reading("weak")
    if foreign:
        return Reading(None, foreign=True, doubtful=lacks.names)
    have = [(set(terms(each)), _negates(each)) for each in statements]
    if _contradicted(wanted, have, negates=_negates(sentence)):
        return Reading("unsupported")
    # However it is written, a number that agrees is there.
    agreed = {term for term in wanted if is_number(term) and not lacks.names}
    coverage = len(wanted & set(terms(passage)) | agreed) / len(wanted)
    if coverage + COSINE < WEAK:
        return Reading("unsupported")
    opposed = _negates(sentence) and not any(negates for _, negates in have)
    return Reading(None, coverage, doubtful=lacks.names or opposed)


def _only_negated(said: str, statements: Sequence[str]) -> bool:
    """Whether the words stand only in statements that negate something."""
    around = [each for each in statements if f" {said} " in f" {' '.join(words(each))} "]
    return bool(around) and all(_negates(each) for each in around)


def _negates(text: str) -> bool:
    found = words(text)
    return any(word in NEGATIONS or word.endswith("n't") for word in found)


def _contradicted(
    wanted: set[str], have: Sequence[tuple[set[str], bool]], *, negates: bool
) -> bool:
    """Whether the statement nearest by its terms says the opposite."""
    alike = {True: 0.0, False: 0.0}
    for said, negated in have:
        share = len(wanted & said) / len(wanted)
        alike[negated] = max(alike[negated], share)
    opposite, same = alike[not negates], alike[negates]
    return opposite >= ALIKE and opposite - same >= MORE_ALIKE


def _language(text: str) -> str:
    """The language whose small words the text uses most; empty when it uses none."""
    if HAN.search(text):
        return "zh"
    found = words(text)
    counts = {name: sum(word in own for word in found) for name, own in FUNCTION_WORDS.items()}
    best = max(counts, key=lambda name: (counts[name], name == "en"))
    return best if counts[best] else ""


def _nearest(pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """The cosine of each sentence with the nearest statement of its passage."""
    statements = {passage: split(passage) or [passage] for _, passage in pairs}
    texts = list(dict.fromkeys([s for s, _ in pairs] + list(chain(*statements.values()))))
    if not texts:
        return []
    try:
        vectors = dict(zip(texts, encode(texts), strict=True))
    except EmbeddingUnavailable:
        return [None for _ in pairs]
    return [max(float(vectors[s] @ vectors[t]) for t in statements[p]) for s, p in pairs]


def _decided(reading: Reading, cosine: float | None) -> CitationStatus:
    if cosine is None:
        enough = reading.foreign or reading.coverage >= MOST_TERMS
        return "weak" if enough else "unsupported"
    if reading.foreign:
        return "verified" if cosine >= TRANSLATED and not reading.doubtful else "weak"
    score = reading.coverage + COSINE * cosine
    if score < WEAK:
        return "unsupported"
    sure = score >= VERIFIED and reading.coverage >= MOST_TERMS and not reading.doubtful
    return "verified" if sure else "weak"
