"""Support: whether a passage says what is cited from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

from agents.documentation.citing import without_markers
from agents.documentation.holding import Statement, held, statements, word_for_word
from agents.documentation.particulars import missing
from agents.documentation.quantities import is_number
from agents.terms import FUNCTION_WORDS, HAN, content_words, stem, terms, words
from knowledge.embedding import encode
from knowledge.errors import EmbeddingUnavailable
from knowledge.sentences import split

CitationStatus = Literal["verified", "weak", "unsupported"]
ORDER: tuple[CitationStatus, ...] = ("unsupported", "weak", "verified")

# What no statement holds word by word is scored by the share of its terms in the passage, plus so
# much of its cosine with the nearest statement there; less than WEAK is no support. Chosen with
# all-MiniLM-L6-v2 on 175 claims of WiCE beside passages of up to 2,400 characters. Of the 174
# others 91 % of what is called unsupported is not fully supported, and 69 % of what is not fully
# supported is called so; 14 % of the supported claims are lost. Those that are verified, 3, are
# supported: claims of such length seldom keep to the words of one sentence.
COSINE, WEAK = 0.75, 0.95
# Without an embedding, what is weak has this share of its terms in the passage.
MOST_TERMS = 0.75
# This share of the terms in one statement that says the opposite, and so much more than in any
# that says the same, is a contradiction.
ALIKE, MORE_ALIKE = 0.6, 0.25


@dataclass(frozen=True)
class Reading:
    """A sentence beside a passage: what the words alone say of it."""

    settled: CitationStatus | None  # no embedding is needed
    coverage: float = 0.0  # share of the sentence's terms in the passage


@dataclass(frozen=True)
class Text:
    """A sentence or passage, taken apart once for all it is held against."""

    text: str

    @cached_property
    def whole(self) -> Statement:
        """It as one statement."""
        return Statement(without_markers(self.text))

    @cached_property
    def statements(self) -> list[Statement]:
        """Its statements."""
        return list(statements(self.text))

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its terms, numbers included."""
        return frozenset(terms(self.text))

    @cached_property
    def alike(self) -> list[tuple[frozenset[str], bool]]:
        """The terms of each of its statements, and whether it denies something."""
        return [(frozenset(terms(each.text)), each.negates) for each in self.statements]

    @cached_property
    def language(self) -> str:
        """The language whose small words it uses most; empty when it uses none."""
        return _language(self.text)


def support(sentence: str, passage: str) -> CitationStatus:
    """Whether `passage` says `sentence`: it does, it may well, or it does not."""
    return supports([(sentence, passage)])[0]


def supports(pairs: Sequence[tuple[str, str]]) -> list[CitationStatus]:
    """Say of each (sentence, passage) how far the passage supports the sentence.

    "verified": word for word, or one of its statements has all terms of the sentence, its numbers
    with their units, names, negation and words such as "only" and "before"; "unsupported": too
    little of it, a number, address or code that the passage does not hold, or its opposite; "weak":
    what is between. Across languages words do not compare: there a wrong number, address or code is
    unsupported and all else weak.
    """
    taken = {passage: Text(passage) for _, passage in pairs}
    bare = {sentence: Text(without_markers(sentence)) for sentence, _ in pairs}
    readings = [_read(bare[sentence], taken[passage]) for sentence, passage in pairs]
    open_ = [place for place, each in enumerate(readings) if each.settled is None]
    cosines = _nearest([pairs[place] for place in open_])
    found = dict(zip(open_, cosines, strict=True))
    return [each.settled or _decided(each, found[place]) for place, each in enumerate(readings)]


def foreign(sentence: str, passage: str) -> bool:
    """Whether the two are written in different languages, so that their words do not compare."""
    return _apart(Text(sentence), Text(passage))


def _apart(sentence: Text, passage: Text) -> bool:
    spoken = {sentence.language, passage.language}
    # What uses no small words is of the same language when it shares terms.
    if "" in spoken and len(spoken) > 1:
        return len(sentence.terms & passage.terms) < ALIKE * len(sentence.terms)
    return len(spoken) > 1


def _read(sentence: Text, passage: Text) -> Reading:
    if not words(sentence.text):
        return Reading("unsupported")
    said, have = sentence.whole, passage.statements
    literal = word_for_word(said, passage.whole, have)
    if literal is not None:
        return Reading("verified" if literal else "weak")
    apart = _apart(sentence, passage)
    names = sentence.language == "en" and not apart
    if missing(sentence.text, passage.text, names=names).numbers:
        return Reading("unsupported")
    if apart or not sentence.terms:
        return Reading("weak")
    if held(said, have, names=names):
        return Reading("verified")
    if _contradicted(sentence, passage):
        return Reading("unsupported")
    coverage = _coverage(sentence.text, passage)
    return Reading("unsupported" if coverage + COSINE < WEAK else None, coverage)


def _coverage(sentence: str, passage: Text) -> float:
    """The share of the sentence's terms in the passage; its numbers have been found there."""
    wanted = list(dict.fromkeys(content_words(sentence)))
    return sum(is_number(each) or stem(each) in passage.terms for each in wanted) / len(wanted)


def _contradicted(sentence: Text, passage: Text) -> bool:
    """Whether the statement nearest by its terms says the opposite."""
    nearest = {True: 0.0, False: 0.0}
    for said, denies in passage.alike:
        share = len(sentence.terms & said) / len(sentence.terms)
        nearest[denies] = max(nearest[denies], share)
    opposite, same = nearest[not sentence.whole.negates], nearest[sentence.whole.negates]
    return opposite >= ALIKE and opposite - same >= MORE_ALIKE


def _language(text: str) -> str:
    if HAN.search(text):
        return "zh"
    found = words(text)
    counts = {name: sum(word in own for word in found) for name, own in FUNCTION_WORDS.items()}
    best = max(counts, key=lambda name: (counts[name], name == "en"))
    return best if counts[best] else ""


def _nearest(pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """The cosine of each sentence with the nearest statement of its passage."""
    parts = {passage: split(passage) or [passage] for _, passage in pairs}
    texts = list(dict.fromkeys([s for s, _ in pairs] + list(chain(*parts.values()))))
    if not texts:
        return []
    try:
        vectors = dict(zip(texts, encode(texts), strict=True))
    except EmbeddingUnavailable:
        return [None for _ in pairs]
    return [max(float(vectors[s] @ vectors[t]) for t in parts[p]) for s, p in pairs]


def _decided(reading: Reading, cosine: float | None) -> CitationStatus:
    if cosine is None:
        return "weak" if reading.coverage >= MOST_TERMS else "unsupported"
    return "unsupported" if reading.coverage + COSINE * cosine < WEAK else "weak"
