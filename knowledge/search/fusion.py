"""Fusion: makes one ranking of several, and a varied selection of it. Pure functions."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Ranking = list[int]  # chunk ids, best first

# Reciprocal rank fusion, Cormack, Clarke and Büttcher 2009 (SIGIR): their k.
RRF_K = 60

Thing = TypeVar("Thing")


def reciprocal_rank_fusion(rankings: Iterable[tuple[float, Sequence[int]]]) -> dict[int, float]:
    """Return chunk id → score, best first, from (weight, ranking) pairs.

    A chunk gets weight / (60 + rank) from every ranking it is in, ranks counted from 1.
    """
    scores: dict[int, float] = {}
    for weight, ranking in rankings:
        for rank, chunk_id in enumerate(ranking, start=1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight / (RRF_K + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def one_per_place(things: Iterable[Thing], place: Callable[[Thing], Hashable]) -> list[Thing]:
    """Return the things in order, only the first of each place."""
    first: dict[Hashable, Thing] = {}
    for thing in things:
        first.setdefault(place(thing), thing)
    return list(first.values())


def maximal_marginal_relevance(
    relevance: Sequence[float],
    vectors: NDArray[np.float32],
    *,
    limit: int,
    trade_off: float,
) -> list[int]:
    """Return at most `limit` places of candidates: relevant, and unlike those before them.

    Carbonell and Goldstein 1998 (SIGIR): trade_off · relevance - (1 - trade_off) · the highest
    cosine with a candidate already chosen. Relevance in 0..1; `vectors` of length 1, one row per
    candidate, a row of zeros for a candidate without a vector.
    """
    closest = np.zeros(len(relevance), dtype=np.float32)
    scores = np.asarray(relevance, dtype=np.float32)
    chosen: list[int] = []
    while len(chosen) < min(limit, len(relevance)):
        gain = trade_off * scores - (1 - trade_off) * closest
        gain[chosen] = -np.inf
        best = int(gain.argmax())
        chosen.append(best)
        closest = np.maximum(closest, vectors @ vectors[best])
    return chosen
