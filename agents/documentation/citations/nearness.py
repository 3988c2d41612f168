"""Nearness: how near what is said comes to each passage, by its words and by its meaning."""

from collections.abc import Iterable, Sequence

import numpy as np

from agents.attributes import SourceReference
from agents.documentation.citations.statements import FEWEST_WORDS
from agents.documentation.passages import with_heading
from agents.words import content_words, terms
from knowledge.embedding import Vectors, encode, similarities
from knowledge.errors import EmbeddingUnavailable
from knowledge.language import likeliest, probabilities, prose
from knowledge.sentences import split_passage

# A passage this near is the source of a statement, and one nearer by so much than what is cited is
# it instead. Nearness is the share of the statement's terms that the passage has, plus the cosine
# with the nearest of its sentences (all-MiniLM-L6-v2). Of the 115 supported claims of WiCE (Kamoi
# et al. 2023), each beside five other passages, of the same article as far as it goes, .87 get the
# right passage and .04 another; without the right one .20 get any. Of wrong markers .77 are put
# right, and no right one is changed. `evaluate citations` measures it.
NEAR, NEARER = 1.0, 0.4
# The meaning is compared with the passages that share the most terms.
COMPARED = 2
# A statement this far from what it cites shares nothing with it. Of 358 statements of people's
# answers (MT-RAG, cloud; Katsis et al. 2025) .02 are so far from their passages, mostly what every
# answer might end with, and of the statements of other passages .23.
FAR = 0.3
# An answer is about something else when none of its statements has this much in common with the
# question, cosine and share of the question's terms together: 1 of these 70 answers, .10 of their
# statements taken one by one, and .75 of the statements of other passages.
BESIDE = 0.15


class Nearness:
    """The passages of an answer, and how near statements come to each."""

    def __init__(self, references: Sequence[SourceReference]) -> None:
        self._texts = {each.marker: each.text for each in references}
        self._terms = {each.marker: set(terms(with_heading(each))) for each in references}
        self._vectors: dict[str, Vectors] = {}
        self._stated: dict[str, Vectors] = {}

    def source(self, statement: str) -> str:
        """Return the marker of the passage a statement comes from; empty when none is near."""
        marker, nearness = self._nearest(statement)
        return marker if nearness >= NEAR else ""

    def better_source(self, statement: str, cited: Sequence[str]) -> str:
        """Return the marker of a passage clearly nearer than all that are cited; else empty."""
        marker, nearness = self._nearest(statement)
        if marker in cited or nearness < NEAR:
            return ""
        apart = min(nearness - self._nearness(statement, each) for each in cited)
        return marker if apart >= NEARER else ""

    def is_far(self, statement: str, cited: Iterable[str]) -> bool:
        """Whether a statement shares nothing with the passages that it cites."""
        return all(self._nearness(statement, each) < FAR for each in cited)

    def _nearest(self, statement: str) -> tuple[str, float]:
        """The nearest passage, and how near it is, from -1 to 2; 0 where there is none."""
        ranked = sorted(self._texts, key=lambda marker: -self._share(statement, marker))
        compared = [(self._nearness(statement, each), each) for each in ranked[:COMPARED]]
        nearness, marker = max(compared, default=(0.0, ""), key=lambda each: each[0])
        return marker, nearness

    def _nearness(self, statement: str, marker: str) -> float:
        return self._share(statement, marker) + self._cosine(statement, marker)

    def _share(self, statement: str, marker: str) -> float:
        """The share of the statement's terms that a passage and its heading have."""
        stated = set(terms(statement))
        return len(stated & self._terms[marker]) / len(stated) if stated else 0.0

    def _cosine(self, statement: str, marker: str) -> float:
        """The cosine with the nearest sentence; without a model the words stand for the meaning."""
        try:
            if marker not in self._vectors:
                text = self._texts[marker]
                self._vectors[marker] = encode(split_passage(text) or [text])
            if statement not in self._stated:
                (self._stated[statement],) = encode([statement])
        except EmbeddingUnavailable:
            return self._share(statement, marker)
        return float((self._vectors[marker] @ self._stated[statement]).max())


def are_beside(question: str, statements: Sequence[str]) -> bool:
    """Whether none of the statements is about what is asked.

    That is not told of what is in another language than the question, nor of a few words.
    """
    if any(len(content_words(each)) < FEWEST_WORDS for each in statements):
        return False
    asked = likeliest(probabilities(prose(question)))
    alike = [each for each in statements if likeliest(probabilities(prose(each))) == asked]
    if not question or len(alike) < len(statements):
        return False
    wanted = set(terms(question))
    shares = [len(wanted & set(terms(each))) / (len(wanted) or 1) for each in alike]
    try:
        cosines = similarities(question, alike, is_foreign=False)
    except EmbeddingUnavailable:
        return False
    return bool((cosines + np.array(shares) < BESIDE).all())
