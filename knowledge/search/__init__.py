"""Search: the passages that could answer a question, from several levels made one ranking."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from django.conf import settings

from knowledge.search import cache, expansion, results
from knowledge.search.confidence import Verdict, judge
from knowledge.search.explainer import explain as explained
from knowledge.search.explanation import Explanation, Wording
from knowledge.search.levels import Weighed, weigh
from knowledge.search.results import Beside, Found, Passage, Quality, neighbours
from knowledge.search.scope import Scope, scope_of
from knowledge.search.selection import select
from knowledge.search.sql import Milliseconds, timed, together
from knowledge.search.vector import Encoded, encode

__all__ = ["Beside", "Explanation", "Found", "Passage", "Quality", "find", "neighbours", "search"]


def search(
    question: str,
    *,
    collections: Sequence[str],
    limit: int | None = None,
    alternative: str = "",
    languages: Sequence[str] = (),
    audience: str = "",
    explain: bool = False,
    reuse: str = "",
) -> Found:
    """Return at most `limit` passages (SEARCH_RESULTS_LIMIT) that could answer `question`.

    `collections` are names; none means all but those that are only searched by name.
    `alternative` is a second wording that counts beside the first. `languages` are tags like "de";
    `audience` is one that documents name, and those that name none are for all. Where the embedding
    model fails only words are compared, and `error` of the result says so. `explain` adds what was
    considered, and takes longer. `reuse` names an owner: it takes what an equal search of theirs
    found in the last CACHE_SEARCH_SECONDS, unless something changed since.
    Raises UnknownCollection.
    """
    milliseconds: Milliseconds = {}
    with timed(milliseconds, "scope"):
        where = scope_of(collections, languages, audience)
    wordings, made = expansion.wordings(question, alternative, where)
    most = limit or settings.SEARCH_RESULTS_LIMIT
    key = cache.place(wordings, where, most, reuse) if reuse and not explain else ""
    found = cache.take(key, milliseconds)
    if found is None:
        with timed(milliseconds, "embedding"):
            vectors, error = encode(wordings, where.models)
        found = find(
            wordings, vectors, where, limit=most, explain=explain, milliseconds=milliseconds
        )
        found = replace(found, error=error, stats=found.stats | {"cached": False})
        cache.keep(key, found)
    return replace(found, stats=found.stats | {"expansion": made})


def find(
    wordings: Sequence[Wording],
    vectors: Encoded,
    where: Scope,
    *,
    limit: int,
    explain: bool = False,
    milliseconds: Milliseconds,
) -> Found:
    """Return the passages for wordings whose vectors are known."""
    with together():
        weighed = weigh(wordings, vectors, where, milliseconds)
        with timed(milliseconds, "selection"):
            best, cosines = weighed.best(), weighed.cosines()
            selection = select(weighed, best, limit)
            asked = results.ask([weighed.parts[place].chunk for place in selection.results])
            verdict = judged(weighed, best, cosines, where)
            found = results.received(asked)
        explanation = explained(weighed, selection, vectors, where) if explain else None
    return Found(
        passages=tuple(
            found[chunk].passage(float(weighed.scores[place]), cosines[place])
            for place in selection.results
            if (chunk := weighed.parts[place].chunk) in found
        ),
        quality=verdict.quality,
        no_context=verdict.no_context,
        stats={
            "hits": weighed.hits(),
            "ms": milliseconds,
            "candidates": len(weighed.parts),
            "chunks": where.chunks,
            **asdict(verdict),
        },
        explain=explanation,
    )


def judged(
    weighed: Weighed, best: Sequence[int], cosines: Sequence[float | None], where: Scope
) -> Verdict:
    """Return how far the chunks can be trusted, however many of them are results."""
    shares = weighed.shares()
    nearest = best[: 2 * settings.SEARCH_FETCH_K]
    return judge(
        [cosines[place] for place in nearest],
        [shares[place] for place in nearest],
        [where.bars[weighed.parts[place].collection] for place in nearest],
        min_hits=settings.SEARCH_MIN_HITS,
        chunks=where.chunks,
    )
