"""Search: the passages that could answer a question, from several levels made one ranking."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from time import perf_counter

import numpy as np
from django.conf import settings
from django.db import transaction
from numpy.typing import NDArray

from knowledge import embedding
from knowledge.errors import EmbeddingUnavailable
from knowledge.models import Chunk
from knowledge.search import keyword, semantic
from knowledge.search.candidates import Candidate, load
from knowledge.search.found import Found, Passage, Quality
from knowledge.search.fusion import (
    Ranking,
    maximal_marginal_relevance,
    one_per_place,
    reciprocal_rank_fusion,
)
from knowledge.search.quality import judge
from knowledge.search.scope import collection_ids

__all__ = ["Found", "Passage", "Quality", "search"]

# Meaning finds more than words do on most collections; words save it where names and codes matter.
LEVEL_WEIGHTS = {"keyword": 0.7, "semantic": 1.0}
# How many chunks a level may name. More than are fused: several often share a section.
LEVEL_LIMIT = 60
# A second wording is somebody's guess at what was meant.
ALTERNATIVE_WEIGHT = 0.7


def search(
    question: str, *, collections: Sequence[str], limit: int | None = None, alternative: str = ""
) -> Found:
    """Return at most `limit` passages (SEARCH_RESULTS_LIMIT) that could answer `question`.

    `collections` are names; none means every collection. `alternative` is a second wording that
    ranks beside the first. Without the embedding model only words are compared, and `error` of
    the result says so. Raises UnknownCollection.
    """
    wordings = [wording for wording in (question.strip(), alternative.strip()) if wording]
    milliseconds: dict[str, float] = {}
    vectors, error = encoded(wordings, milliseconds)
    with transaction.atomic():
        scope = collection_ids(collections)
        rankings = levels(wordings, vectors, scope, milliseconds)
        fused = reciprocal_rank_fusion(weighted(rankings))
        # Twice as many as are weighed against each other, because chunks share sections.
        best = dict(islice(fused.items(), 2 * settings.SEARCH_FETCH_K))
        candidates = load(best, vectors)
        chunks = Chunk.objects.filter(document__collection__in=scope).count()
    chosen = varied(candidates, limit or settings.SEARCH_RESULTS_LIMIT)
    verdict = judge(
        [each.cosine for each in chosen],
        threshold=settings.SEARCH_CONFIDENCE_THRESHOLD,
        min_hits=settings.SEARCH_MIN_HITS,
        chunks=chunks,
    )
    return Found(
        passages=tuple(each.passage() for each in chosen),
        quality=verdict.quality,
        no_context=verdict.no_context,
        error=error,
        stats={
            "hits": {level: [len(each) for each in found] for level, found in rankings.items()},
            "ms": milliseconds,
            "candidates": len(candidates),
            "chunks": chunks,
            **asdict(verdict),
        },
    )


def encoded(
    wordings: Sequence[str], milliseconds: dict[str, float]
) -> tuple[NDArray[np.float32] | None, str]:
    """Return a vector per wording; or None, and why there is none."""
    begin = perf_counter()
    try:
        return embedding.encode(wordings), ""
    except EmbeddingUnavailable as error:
        return None, f"Only words were compared: {error}"
    finally:
        milliseconds["embedding"] = elapsed(begin)


def levels(
    wordings: Sequence[str],
    vectors: NDArray[np.float32] | None,
    scope: Sequence[int],
    milliseconds: dict[str, float],
) -> dict[str, list[Ranking]]:
    """Return what each level found, one ranking per wording."""
    found: dict[str, list[Ranking]] = {}
    begin = perf_counter()
    found["keyword"] = keyword.find(wordings, collections=scope, limit=LEVEL_LIMIT)
    milliseconds["keyword"] = elapsed(begin)
    if vectors is not None:
        begin = perf_counter()
        found["semantic"] = semantic.find(vectors, collections=scope, limit=LEVEL_LIMIT)
        milliseconds["semantic"] = elapsed(begin)
    return found


def weighted(rankings: dict[str, list[Ranking]]) -> list[tuple[float, Ranking]]:
    """Return each ranking with its weight: that of the level, less for a second wording."""
    return [
        (LEVEL_WEIGHTS[level] * (ALTERNATIVE_WEIGHT if place else 1.0), ranking)
        for level, found in rankings.items()
        for place, ranking in enumerate(found)
    ]


def varied(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return the results: the best chunk of each section, relevant and not repetitive."""
    fetched = max(settings.SEARCH_FETCH_K, limit)
    best = one_per_place(candidates, lambda each: each.place)[:fetched]
    if not best:
        return []
    chosen = maximal_marginal_relevance(
        [each.score / best[0].score for each in best],
        np.stack([each.vector for each in best]),
        limit=limit,
        trade_off=settings.MMR_LAMBDA,
    )
    return [best[place] for place in chosen]


def elapsed(begin: float) -> float:
    """Return the milliseconds since `begin`."""
    return round((perf_counter() - begin) * 1000, 2)
