"""Levels: what each of the four says of every chunk that words, its vector or its document name.

Keyword: the words of the chunk and of what stands above it. Semantic: its vector. Hierarchical: the
vector of its section. Summary: that of its document. Of all that are weighed so, few become the
results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

import numpy as np
from django.conf import settings

from knowledge.embedding import Vectors
from knowledge.search import keyword, vector
from knowledge.search.explanation import Reason, Wording
from knowledge.search.fusion import (
    Scores,
    fill_missing,
    fuse,
    interleave,
    maximal_marginal_relevance,
    one_per_place,
    share_of_best,
)
from knowledge.search.scope import Scope
from knowledge.search.sql import Milliseconds, one_transaction, timed
from knowledge.search.vector import Part, Space, WordingVectors, likeness

# Of words, as part of the best chunk's, and of cosines. One set for all collections: on five judged
# ones of different kinds the fusion beats words alone, vectors alone and reciprocal rank fusion of
# both. 0.2 to 0.4 of words do about the same, and no weight makes up for the gaps that ranks hide.
WEIGHTS = {"keyword": 0.3, "semantic": 1.0, "hierarchical": 0.15, "summary": 0.15}
# Chunks that are named for their words. From 20 on the fusion finds the same, but what the first
# phase of the keyword level names is not quite the best.
LIMIT = 25
# The reason, and the place of the candidate in whose favour.
Dropped = dict[int, tuple[Reason, int | None]]


@dataclass(frozen=True)
class WeighedChunks:
    """The chunks that some level named, and what every level says of them."""

    parts: list[Part]
    wordings: Sequence[Wording]
    # Level → scores, (wordings, chunks): shares or cosines, NaN where the level knows none.
    levels: dict[str, Scores]
    scores: Scores  # fused, of each chunk
    spaces: list[Space]
    # Of the chunks whose tokens were read, by place: see `reranker.alignment`.
    alignments: Mapping[int, float] = field(default_factory=dict)

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
        is_user_wording = [wording.kind != "hyde" for wording in self.wordings]
        # Each model's own: what a cosine is worth depends on the model.
        rows = [
            space.spread(space.semantic(), len(self.parts))[is_user_wording]
            for space in self.spaces
        ]
        nearest = np.fmax.reduce(np.concatenate(rows), axis=0)
        return [None if isnan(cosine) else cosine for cosine in nearest.tolist()]

    def shares(self) -> list[float]:
        """Return how much of a wording's words each chunk holds, of the wording it has most of."""
        return [float(share) for share in np.max(self.levels["keyword"], axis=0, initial=0.0)]


def weigh(
    wordings: Sequence[Wording],
    vectors: WordingVectors,
    scope: Scope,
    milliseconds: Milliseconds,
    weights: Mapping[str, float] = WEIGHTS,
) -> WeighedChunks:
    """Ask the levels; those that compare vectors only where there are any.

    What a level says counts by its weight; of one without, not at all. Adds to `milliseconds` what
    each step took. While PostgreSQL is at one thing, this does another.
    """
    with one_transaction():
        with timed(milliseconds, "keyword"):
            # The words of what no user said are a guess too many.
            texts = [each.text if each.kind != "hyde" else "" for each in wordings]
            query = keyword.ask(texts, scope)
            literals = {model: vector.vector_literals(rows) for model, rows in vectors.items()}
            lists = query.rows()
        with timed(milliseconds, "vectors"):
            vector_queries = [
                vector.ask(rows, literals[model], model, scope) for model, rows in vectors.items()
            ]
            words = keyword.parse_words(lists, len(texts), scope.chunks)
            chunk_ids = {*words.named(LIMIT)}
            chunk_ids.update(chunk for walk in vector_queries for (chunk,) in walk.rows())
        with timed(milliseconds, "fusion"):
            space_queries = vector.ask_space(chunk_ids, literals, scope.models)
            impacts = words.query(chunk_ids)
            parts, spaces = vector.parse_spaces(space_queries, vectors)
            shares = words.scores([each.chunk for each in parts], impacts)
            levels = {"keyword": shares} | vector_levels(spaces, len(parts))
            scores = combine(levels, wordings, spaces, weights)
    return WeighedChunks(parts, wordings, levels, scores, spaces)


def combine(
    levels: Mapping[str, Scores],
    wordings: Sequence[Wording],
    spaces: Sequence[Space],
    level_weights: Mapping[str, float],
) -> Scores:
    """Return a score per chunk, of all levels and wordings, each by its weight.

    Cosines count as they are once the wordings have moved towards what would be best without that,
    unless levels are asked by themselves.
    """
    weights = [wording.weight for wording in wordings]
    over_levels = {level: over_wordings(rows, weights, level) for level, rows in levels.items()}
    scores = fuse(over_levels, level_weights)
    if not spaces or level_weights is not WEIGHTS:
        return scores
    moved_cosines = [
        space.spread(space.scale * space.moved(scores), len(scores)) for space in spaces
    ]
    return fuse(
        over_levels | {"semantic": over_wordings(interleave(moved_cosines), weights, "semantic")},
        level_weights,
    )


def vector_levels(spaces: Sequence[Space], candidates: int) -> dict[str, Scores]:
    """Return the scores of the levels that compare vectors; nothing without vectors."""
    if not spaces:
        return {}
    rows_by_model = {
        "semantic": [each.spread(each.scale * each.semantic(), candidates) for each in spaces],
        "hierarchical": [each.spread(each.scale * each.sections, candidates) for each in spaces],
        "summary": [each.spread(each.scale * each.documents, candidates) for each in spaces],
    }
    return {level: interleave(of_models) for level, of_models in rows_by_model.items()}


def over_wordings(rows: Scores, weights: Sequence[float], level: str) -> Scores:
    """Return the level's scores over all wordings, those it knows nothing about left out."""
    is_known = ~np.isnan(rows).all(axis=1) if level != "keyword" else rows.any(axis=1)
    if not is_known.any():
        return np.zeros(rows.shape[1])
    known_rows = (
        share_of_best(rows[is_known]) if level == "keyword" else fill_missing(rows[is_known])
    )
    weight_shares = np.array(weights)[is_known]
    return np.asarray(weight_shares / weight_shares.sum() @ known_rows, dtype=np.float64)


@dataclass(frozen=True)
class Selection:
    """Places of the candidates that become results, best first, and of those weighed for it."""

    results: list[int]
    fetched: list[int]  # the best chunk of each section, as many as are weighed
    alike: Vectors  # cosine of each pair of those

    def dropped(self, weighed: WeighedChunks, best: Sequence[int]) -> Dropped:
        """Return why the others are no results."""
        dropped: Dropped = {}
        of_section: dict[int, int] = {}
        for place in best:
            better = of_section.setdefault(weighed.parts[place].section, place)
            dropped[place] = ("fetch", None) if better == place else ("section", better)
        rows = [row for row, place in enumerate(self.fetched) if place in self.results]
        for row, place in enumerate(self.fetched):
            nearest = rows[int(np.argmax(self.alike[row, rows]))]
            dropped[place] = ("variety", self.fetched[nearest])
        return {place: why for place, why in dropped.items() if place not in self.results}


def select(
    weighed: WeighedChunks, best: Sequence[int], limit: int, *, once_per_section: bool = True
) -> Selection:
    """Return the best chunk of each section, relevant and not repetitive, at most `limit`.

    `best` holds the places of all chunks, best first. Within named documents a section may have
    several: one without headings is a single section.
    """
    first: Sequence[int] = best
    if once_per_section:
        first = one_per_place(best, lambda place: weighed.parts[place].section)
    fetched = first[: max(settings.SEARCH_FETCH_K, limit)]
    alike = weighed.likeness(fetched)
    chosen = maximal_marginal_relevance(
        relevance([float(weighed.scores[place]) for place in fetched]),
        alike,
        limit=limit,
        trade_off=settings.MMR_LAMBDA,
    )
    # MMR chooses; the order stays that of the scores, which is better.
    return Selection([fetched[row] for row in sorted(chosen)], list(fetched), alike)


def relevance(scores: Sequence[float]) -> list[float]:
    """Return the scores, best first, from 1 to 0: what MMR weighs against cosines.

    As parts of the best they would hardly differ, and variety alone would choose.
    """
    span = scores[0] - scores[-1] if scores else 0.0
    return [(score - scores[-1]) / span if span > 0 else 1.0 for score in scores]
