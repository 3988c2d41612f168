"""Search: the passages that could answer a question, from several levels made one ranking."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from django.conf import settings

from knowledge.identifiers import LOCAL_MODEL
from knowledge.search import cache, expansion, explainer, reranker, results, typos
from knowledge.search.confidence import Verdict, judge, lead
from knowledge.search.explanation import Explanation, Wording
from knowledge.search.languages import across
from knowledge.search.levels import WEIGHTS, WeighedChunks, select, weigh
from knowledge.search.results import (
    Passage,
    Quality,
    SearchResult,
    Surroundings,
    beside,
    neighbours,
    passages_of,
    whole_sections,
)
from knowledge.search.scope import Scope, scope_of
from knowledge.search.sql import Milliseconds, one_transaction, timed
from knowledge.search.vector import WordingVectors, encode

__all__ = [
    "Explanation",
    "Passage",
    "Quality",
    "SearchResult",
    "Surroundings",
    "beside",
    "neighbours",
    "passages_of",
    "search",
    "whole_sections",
]

# A second wording is somebody's guess at what was meant.
ALTERNATIVE_WEIGHT = 0.7


def search(
    question: str,
    *,
    collections: Sequence[str],
    limit: int | None = None,
    alternative: str = "",
    languages: Sequence[str] = (),
    audience: str = "",
    documents: Sequence[str] = (),
    weights: Mapping[str, float] = WEIGHTS,
    spoken: str = "",
    reads: bool = True,
    explain: bool = False,
    reuse: str = "",
) -> SearchResult:
    """Return at most `limit` passages (SEARCH_RESULTS_LIMIT) that could answer `question`.

    `collections` are names; none means all but those that are only searched by name. `alternative`
    is a second wording that counts beside the first. `languages` are tags like "de"; `audience` is
    one that documents name, and those that name none are for all. `documents` are the ids of those
    that may be found; none means all. `weights` is what each level counts, for who wants one of
    them alone: see `levels.WEIGHTS`. `spoken` is the language the question is in, where known: see
    `languages.across`. `reads` has the best chunks read token by token, which takes ten times as
    long. Where the embedding model fails only words are compared, and `error` of the result says
    so. `explain` adds what was considered, and takes longer. `reuse` names an owner: it takes what
    an equal search of theirs found in the last CACHE_SEARCH_SECONDS, unless something changed
    since. A word that no document has may be searched for as what it was meant to be; `corrected`
    of the statistics says so. Raises UnknownCollection.
    """
    milliseconds: Milliseconds = {}
    with timed(milliseconds, "scope"):
        scope = scope_of(collections, languages, audience, documents)
        if spoken and settings.CROSS_LINGUAL:
            scope = across(scope, spoken)
    with timed(milliseconds, "typos"):
        # The words of another language are no misspelt ones of the documents'.
        replaced = {} if scope.is_foreign else typos.corrections(question, scope)
    question = typos.corrected(question, replaced)
    wordings, expansion_note = own_wordings(question, alternative), expansion.OFF
    if wordings and settings.SEARCH_EXPANSION != expansion.OFF:
        wordings, expansion_note = expansion.expand(wordings, scope)
    count = limit or settings.SEARCH_RESULTS_LIMIT
    reads = reads and weights is WEIGHTS
    key = cache.cache_key(wordings, scope, count, reuse) if reuse and reads and not explain else ""
    result = cache.get(key, milliseconds)
    if result is None:
        result = _found(wordings, scope, count, weights, milliseconds, reads=reads, explain=explain)
        cache.put(key, result)
    notes = {"expansion": expansion_note, "corrected": replaced}
    return replace(result, stats=result.stats | notes)


def own_wordings(question: str, alternative: str) -> list[Wording]:
    """Return what the user says, and a second wording where there is one."""
    own = [
        Wording(question.strip(), "question", 1.0),
        Wording(alternative.strip(), "alternative", ALTERNATIVE_WEIGHT),
    ]
    return [each for each in own if each.text]


def _found(
    wordings: Sequence[Wording],
    scope: Scope,
    limit: int,
    weights: Mapping[str, float],
    milliseconds: Milliseconds,
    *,
    reads: bool,
    explain: bool,
) -> SearchResult:
    """Encode the wordings, unless words alone are compared, and search."""
    with timed(milliseconds, "embedding"):
        compared = scope.models if weights.keys() - {"keyword"} else ()
        vectors, error = encode(wordings, compared)
    result = search_with_vectors(
        wordings,
        vectors,
        scope,
        limit=limit,
        weights=weights,
        reads=reads,
        explain=explain,
        milliseconds=milliseconds,
    )
    return replace(result, error=error, stats=result.stats | {"cached": False})


def search_with_vectors(
    wordings: Sequence[Wording],
    vectors: WordingVectors,
    scope: Scope,
    *,
    limit: int,
    weights: Mapping[str, float] = WEIGHTS,
    reads: bool = False,
    explain: bool = False,
    milliseconds: Milliseconds,
) -> SearchResult:
    """Return the passages for wordings whose vectors are known.

    `reads` as `search` takes it; only what was found by the local model's vectors is read.
    """
    weighed = weigh(wordings, vectors, scope, milliseconds, weights)
    if reads and vectors.keys() == {LOCAL_MODEL}:
        # Outside the transaction: it takes longer than everything else.
        with timed(milliseconds, "reading"):
            weighed = reranker.reranked(wordings[0].text, weighed)
    with one_transaction():
        with timed(milliseconds, "selection"):
            best, cosines = weighed.best(), weighed.cosines()
            selection = select(weighed, best, limit, once_per_section=not scope.documents)
            query = results.ask([weighed.parts[place].chunk for place in selection.results])
            verdict = judge_selection(weighed, best, cosines, scope)
            candidates = results.fetch(query)
        explanation = explainer.explain(weighed, selection, vectors, scope) if explain else None
    return SearchResult(
        passages=tuple(
            candidates[chunk].passage(float(weighed.scores[place]), cosines[place])
            for place in selection.results
            if (chunk := weighed.parts[place].chunk) in candidates
        ),
        quality=verdict.quality,
        no_context=verdict.no_context,
        stats={
            "hits": weighed.hits(),
            "ms": milliseconds,
            "candidates": len(weighed.parts),
            "chunks": scope.chunks,
            "is_foreign": scope.is_foreign,
            **asdict(verdict),
        },
        explain=explanation,
    )


def judge_selection(
    weighed: WeighedChunks, best: Sequence[int], cosines: Sequence[float | None], scope: Scope
) -> Verdict:
    """Return how far the chunks can be trusted, however many of them are results."""
    shares = weighed.shares()
    nearest = best[: 2 * settings.SEARCH_FETCH_K]
    return judge(
        [cosines[place] for place in nearest],
        [shares[place] for place in nearest],
        [scope.bars[weighed.parts[place].collection] for place in nearest],
        min_hits=settings.SEARCH_MIN_HITS,
        chunks=scope.chunks,
        ahead=lead(
            [float(weighed.scores[place]) for place in best],
            [weighed.parts[place].document for place in best],
        ),
    )
