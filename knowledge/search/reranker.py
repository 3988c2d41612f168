"""Reranker: holds the question against the best chunks token by token.

A vector says what a chunk is about as a whole. Whether one place of it speaks of everything that
the question asks only its tokens tell, and to read those takes too long for more than a few.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from django.conf import settings

from knowledge.embedding import Vectors, token_states
from knowledge.errors import EmbeddingUnavailable
from knowledge.search.fusion import unit
from knowledge.search.levels import WeighedChunks
from knowledge.search.results import Candidate, load

# What alignment counts, as part of the best chunk's score. Chosen on five judged collections, among
# 0.3 to 3; from 0.5 to 1.5 each has the right page first as often as before or more often.
WEIGHT = 0.7
# Tokens that are one place of a chunk, and by how many the next one begins later.
SPAN, STEP = 60, 15
# How much the worst matched token of a question counts more than the others: at 0 it alone would,
# at infinity all alike.
SOFTNESS = 0.1

log = logging.getLogger(__name__)


def reranked(question: str, weighed: WeighedChunks) -> WeighedChunks:
    """Return the chunks with scores that count the alignment of the SEARCH_RERANK best.

    No chunk behind those gets ahead of one of them. As they were, where there is nothing to read or
    the model cannot be loaded.
    """
    best = weighed.best()[: settings.SEARCH_RERANK]
    candidates = load([weighed.parts[place].chunk for place in best]) if question and best else {}
    texts = {
        place: shown(candidate)
        for place in best
        if (candidate := candidates.get(weighed.parts[place].chunk))
    }
    if not texts:
        return weighed
    try:
        read = aligned(question, [*texts.values()])
    except EmbeddingUnavailable as error:
        log.warning("what search found was not read once more: %s", error)
        return weighed
    alignments = dict(zip(texts, read, strict=True))
    worst, scores = min(alignments.values()), weighed.scores.copy()
    for place, each in alignments.items():
        scores[place] += WEIGHT * max(float(weighed.scores.max()), 0.0) * (each - worst)
    return replace(weighed, scores=scores, alignments=alignments)


def shown(candidate: Candidate) -> str:
    """Return the text that is read: below its title and headings."""
    headings = [candidate.title, *(each for each in candidate.path if each != candidate.title)]
    return "\n".join(filter(None, [" ".join(filter(None, headings)), candidate.text]))


def aligned(question: str, passages: Sequence[str]) -> list[float]:
    """Return the alignment of each passage. Raises EmbeddingUnavailable."""
    (asked,) = token_states([question], kind="question")
    return [alignment(asked, states) for states in token_states(passages, kind="passage")]


def alignment(question: Vectors, passage: Vectors) -> float:
    """Return how well one place of a passage speaks of everything in a question: -1 to 1.

    Both are hidden states of tokens, (tokens, dimensions). Each token of the question has the
    cosine of the nearest token (late interaction, Khattab and Zaharia 2020, arXiv:2004.12832),
    here within a place of SPAN tokens; of these the soft minimum
    -SOFTNESS · log(mean(exp(-cosine / SOFTNESS))) counts, for a passage that holds all words but
    one often answers another question. Of all places the best counts. The right page is first for
    .81 instead of .79 of 384 support questions, .79 instead of .71, .92 instead of .91, .68 as
    before and .73 instead of .68 of 325 to the pages of four products (WEIGHT was chosen by these),
    and for .69 instead of .67 of 72 to a fifth, by which nothing was chosen.
    """
    cosines = unit(question) @ unit(passage).T
    begins = range(0, max(1, cosines.shape[1] - SPAN + 1), STEP)
    nearest = np.stack([cosines[:, begin : begin + SPAN].max(axis=1) for begin in begins])
    softened = -SOFTNESS * np.log(np.exp(-nearest / SOFTNESS).mean(axis=1))
    return float(softened.max())
