"""Levels: what each of the four says of every chunk that words, its vector or its document name.

Keyword: the words of the chunk and of what stands above it. Semantic: its vector. Hierarchical: the
vector of its section. Summary: that of its document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from knowledge.search import keyword, vector
from knowledge.search.explanation import Wording
from knowledge.search.fusion import Scores, fused, interleaved, known, of_best
from knowledge.search.scope import Scope
from knowledge.search.sql import Milliseconds, timed, together
from knowledge.search.vector import Encoded, Part, Space, Vectors, likeness

# Of words, as part of the best chunk's, and of cosines. One set for all collections: on five judged
# ones of different kinds the fusion beats words alone, vectors alone and reciprocal rank fusion of
# both. 0.2 to 0.4 of words do about the same, and no weight makes up for the gaps that ranks hide.
WEIGHTS = {"keyword": 0.3, "semantic": 1.0, "hierarchical": 0.15, "summary": 0.15}
# Chunks that are named for their words. From 20 on the fusion finds the same, but what the first
# phase of the keyword level names is not quite the best.
LIMIT = 25


@dataclass(frozen=True)
class Weighed:
    """The chunks that some level named, and what every level says of them."""

    parts: list[Part]
    wordings: Sequence[Wording]
    # Level → scores, (wordings, chunks): shares or cosines, NaN where the level knows none.
    levels: dict[str, Scores]
    scores: Scores  # fused, of each chunk
    spaces: list[Space]

    def best(self) -> list[int]:
        """Return the places of the chunks, best first."""
        return [int(place) for place in np.argsort(-self.scores, kind="stable")]

    def likeness(self, places: Sequence[int]) -> Vectors:
        """Return the cosine of each pair of those chunks."""
        return likeness(self.spaces, places)

    def hits(self) -> dict[str, list[int]]:
        """Return per level and wording how many chunks it says anything of."""
        return {
            level: np.count_nonzero(np.abs(rows) > 0, axis=1).tolist()
            for level, rows in self.levels.items()
        }

    def cosines(self) -> list[float | None]:
        """Return the similarity of each chunk to the nearest wording; None without a vector.

        A passage made up to answer the question is no wording: it is near to every passage.
        """
        if not self.spaces:
            return [None] * len(self.parts)
        asked = [each.kind != "hyde" for each in self.wordings]
        # Each model's own: what a cosine is worth depends on the model.
        rows = [each.spread(each.semantic(), len(self.parts))[asked] for each in self.spaces]
        nearest = np.fmax.reduce(np.concatenate(rows), axis=0)
        return [None if isnan(cosine) else cosine for cosine in nearest.tolist()]

    def shares(self) -> list[float]:
        """Return how much of a wording's words each chunk holds, of the wording it has most of."""
        return [float(share) for share in np.max(self.levels["keyword"], axis=0, initial=0.0)]


def weigh(
    wordings: Sequence[Wording], vectors: Encoded, scope: Scope, milliseconds: Milliseconds
) -> Weighed:
    """Ask the levels; those that compare vectors only where there are any.

    Adds to `milliseconds` what each step took. While PostgreSQL is at one thing, this does another.
    """
    with together():
        with timed(milliseconds, "keyword"):
            # The words of what no user said are a guess too many.
            said = [each.text if each.kind != "hyde" else "" for each in wordings]
            asked = keyword.ask(said, scope)
            sent = {model: vector.texts(rows) for model, rows in vectors.items()}
            lists = asked.rows()
        with timed(milliseconds, "vectors"):
            walks = [vector.ask(rows, sent[model], model, scope) for model, rows in vectors.items()]
            words = keyword.received(lists, len(said), scope.chunks)
            found = {*words.named(LIMIT)}
            found.update(chunk for walk in walks for (chunk,) in walk.rows())
        with timed(milliseconds, "fusion"):
            places, impacts = vector.ask_space(found, sent, scope.models), words.asked(found)
            parts, seen = vector.received(places, vectors)
            shares = words.scores([each.chunk for each in parts], impacts)
            levels = {"keyword": shares} | compared(seen, len(parts))
            scores = combined(levels, wordings, seen)
    return Weighed(parts, wordings, levels, scores, seen)


def combined(
    levels: Mapping[str, Scores], wordings: Sequence[Wording], seen: Sequence[Space]
) -> Scores:
    """Return a score per chunk, of all levels and wordings, each by its weight.

    Cosines count as they are once the wordings have moved towards what would be best without that.
    """
    weights = [each.weight for each in wordings]
    said = {level: over(rows, weights, level) for level, rows in levels.items()}
    scores = fused(said, WEIGHTS)
    if not seen:
        return scores
    moved = [each.spread(each.scale * each.moved(scores), len(scores)) for each in seen]
    return fused(said | {"semantic": over(interleaved(moved), weights, "semantic")}, WEIGHTS)


def compared(seen: Sequence[Space], candidates: int) -> dict[str, Scores]:
    """Return the scores of the levels that compare vectors; nothing without vectors."""
    if not seen:
        return {}
    found = {
        "semantic": [each.spread(each.scale * each.semantic(), candidates) for each in seen],
        "hierarchical": [each.spread(each.scale * each.sections, candidates) for each in seen],
        "summary": [each.spread(each.scale * each.documents, candidates) for each in seen],
    }
    return {level: interleaved(of_models) for level, of_models in found.items()}


def over(rows: Scores, weights: Sequence[float], level: str) -> Scores:
    """Return the level's scores over all wordings, those it knows nothing about left out."""
    heard = ~np.isnan(rows).all(axis=1) if level != "keyword" else rows.any(axis=1)
    if not heard.any():
        return np.zeros(rows.shape[1])
    each = of_best(rows[heard]) if level == "keyword" else known(rows[heard])
    share = np.array(weights)[heard]
    return np.asarray(share / share.sum() @ each, dtype=np.float64)
