"""Fusion: makes one ranking of several levels, and a varied selection of it. Pure functions."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

Thing = TypeVar("Thing")


def fuse(levels: Mapping[str, Scores], weights: Mapping[str, float]) -> Scores:
    """Return a score per candidate: the weighted sum of what the levels say.

    Scores, not ranks: ranks throw away by how much the first is better than the second, which is
    what tells how far a level can be trusted with this question. Each level holds a score per
    candidate, NaN where it knows none; that counts as the lowest it knows.
    """
    weighted = [weights.get(level, 0.0) * fill_missing(scores) for level, scores in levels.items()]
    return np.asarray(np.sum(weighted, axis=0), dtype=np.float64)


def fill_missing(scores: Scores) -> Scores:
    """Return each row with its lowest score where there is none, 0 when there is none at all."""
    missing = np.isnan(scores)
    if not missing.any():
        return scores
    lowest = np.where(missing, np.inf, scores).min(axis=-1, keepdims=True)
    return np.where(missing, np.where(np.isinf(lowest), 0.0, lowest), scores)


def share_of_best(scores: Scores) -> Scores:
    """Return each row as parts of its highest: what words are worth differs by question."""
    best = scores.max(axis=-1, initial=0.0, keepdims=True)
    return np.asarray(scores / np.where(best > 0, best, 1.0), dtype=np.float64)


def interleave(models: Sequence[Scores]) -> Scores:
    """Return the cosines of several embedding models on one scale, that of the first.

    Each (wordings, candidates), NaN for chunks that are another's. A model spreads its cosines in
    a way of its own, so the best of one counts as much as the best of the other, and so on down.
    """
    if len(models) == 1:
        return models[0]
    merged = models[0].copy()
    for row, scores in enumerate(merged):
        scale = -np.sort(-scores[~np.isnan(scores)])
        for others in (model[row] for model in models[1:]):
            places = np.flatnonzero(~np.isnan(others))
            order = places[np.argsort(-others[places], kind="stable")]
            scale = scale if len(scale) else others[order]
            scores[order] = scale[np.minimum(np.arange(len(order)), len(scale) - 1)]
    return merged


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows at length 1; a row of zeros stays one."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0), dtype=np.float32)


def one_per_place(things: Iterable[Thing], place: Callable[[Thing], Hashable]) -> list[Thing]:
    """Return the things in order, only the first of each place."""
    first: dict[Hashable, Thing] = {}
    for thing in things:
        first.setdefault(place(thing), thing)
    return list(first.values())


def maximal_marginal_relevance(
    relevance: Sequence[float],
    alike: NDArray[np.float32],
    *,
    limit: int,
    trade_off: float,
) -> list[int]:
    """Return at most `limit` places of candidates: relevant, and unlike those before them.

    Carbonell and Goldstein 1998 (SIGIR): trade_off · relevance - (1 - trade_off) · the highest
    cosine with a candidate already chosen. Relevance in 0..1; `alike`, (candidates, candidates),
    holds the cosine of each pair, 0 where it is not known.
    """
    closest = np.zeros(len(relevance), dtype=np.float32)
    scores = np.asarray(relevance, dtype=np.float32)
    chosen: list[int] = []
    while len(chosen) < min(limit, len(relevance)):
        gain = trade_off * scores - (1 - trade_off) * closest
        gain[chosen] = -np.inf
        best = int(gain.argmax())
        chosen.append(best)
        closest = np.maximum(closest, alike[best])
    return chosen
