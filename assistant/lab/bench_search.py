"""Search bench: how fast passages are found among so many, and what the indexes miss.

The collection is made up, words and vectors, so that any size can be had in minutes; the embedding
of the question is left out and given beside. Beside it, in the same run: an exact comparison with
all vectors, PostgreSQL counting to a million, and on request the hybrid search of LangChain's
PGVectorStore on the same rows.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, median
from time import perf_counter
from typing import Any

from django.conf import settings
from django.db import connection
from rich.table import Table

from assistant.lab import corpus
from assistant.lab.corpus import Questions
from assistant.lab.rival import hybrid_search
from knowledge.embedding import Vectors
from knowledge.embedding.local import LOCAL
from knowledge.identifiers import LOCAL_MODEL
from knowledge.models import Collection
from knowledge.search import keyword, search_with_vectors, vector
from knowledge.search.explanation import Wording
from knowledge.search.levels import LIMIT
from knowledge.search.reranker import aligned
from knowledge.search.scope import Scope, scope_of
from knowledge.search.vector_indexes import INDEX_KINDS, IndexKind

COLLECTION = "bench-search"
QUESTIONS, COMPARED = 200, 50  # asked of every level; compared with an exact search
AT = 10
# Whose vectors a level compares.
INDEX_OF_LEVEL = {"semantic": "chunk", "summary": "document"}
REFERENCE = "SELECT count(*) FROM generate_series(1, 1000000)"
SIZE = """
SELECT sum(pg_total_relation_size(name::regclass))
FROM unnest(ARRAY['knowledge_posting', 'knowledge_commonterm', 'knowledge_census']) AS name
"""

Progress = Callable[[str], Any]
Figures = dict[str, Any]


def measure(chunks: int, progress: Progress, *, langchain_python: str = "") -> Figures:
    """Return the figures, milliseconds; on servers of its own, as it leaves a collection behind.

    `langchain_python` is a Python that has langchain-postgres. Raises NotComparable.
    """
    progress(f"making up {chunks:,} chunks")
    documents = corpus.make(chunks)
    questions = corpus.questions(documents, QUESTIONS)
    progress("storing and indexing them")
    Collection.objects.filter(name=COLLECTION).delete()
    corpus.store(documents, COLLECTION)
    del documents
    figures = ask(questions, progress)
    if langchain_python:
        progress("LangChain's hybrid search on the same rows")
        milliseconds, share = hybrid_search(langchain_python, COLLECTION, questions)
        percentiles = summed_up(milliseconds)
        figures["langchain"] = percentiles | {
            "ratio_to_fused": round(percentiles["p50"] / figures["fused"]["p50"], 2),
            "found": share,
        }
    return figures


def ask(questions: Questions, progress: Progress) -> Figures:
    """Return the figures of the collection that is there.

    `found` is how many of the chunks that questions were drawn from are among the results.
    """
    texts, vectors = questions.texts, questions.vectors
    scope = scope_of([COLLECTION])
    places = range(len(texts))
    steps: dict[str, Callable[[int], Any]] = {
        "keyword": lambda n: keyword.score_alone([texts[n]], scope, LIMIT),
        "semantic": lambda n: vector.nearest_alone("chunk", vectors[n : n + 1], LOCAL_MODEL, scope),
        "summary": lambda n: vector.nearest_alone(
            "document", vectors[n : n + 1], LOCAL_MODEL, scope
        ),
        "fused": lambda n: fused(texts[n], vectors[n : n + 1]),
    }
    figures: Figures = {"chunks": scope.chunks, "levels": {}}
    for name, step in steps.items():
        progress(f"asking: {name}")
        figures["levels"][name] = summed_up([timed(step, place) for place in places])
    figures["fused"] = figures["levels"].pop("fused")
    results = [fused(texts[n], vectors[n : n + 1]) for n in places]
    hits = [text in passages for text, passages in zip(questions.sources, results, strict=True)]
    figures["fused"]["found"] = round(fmean(hits), 3)
    progress("comparing with exact search")
    figures["recall"] = {kind: round(recall(kind, vectors, scope), 4) for kind in INDEX_KINDS}
    exact = [timed(lambda n: exact_search("chunk", vectors[n : n + 1], scope), n) for n in range(5)]
    figures["exact_ms"] = round(median(exact), 2)
    counting = [timed(lambda _: count_to_a_million(), n) for n in range(5)]
    figures["counting_ms"] = round(median(counting), 2)
    figures["ratios"] = {
        "exact_to_fused": round(figures["exact_ms"] / figures["fused"]["p50"], 2),
        "fused_to_counting": round(figures["fused"]["p50"] / figures["counting_ms"], 3),
    }
    figures["embedding_ms"] = embedding(texts)
    figures["reading_ms"] = reading(texts, questions.sources[: settings.SEARCH_RERANK])
    figures["postings_bytes_per_chunk"] = round(postings_bytes() / scope.chunks)
    return figures


def fused(question: str, vectors: Vectors) -> set[str]:
    """Search as users do, but for the embedding of the question; return the texts found."""
    results = search_with_vectors(
        [Wording(question, "question", 1.0)],
        {LOCAL_MODEL: vectors},
        scope_of([COLLECTION]),
        limit=settings.SEARCH_RESULTS_LIMIT,
        milliseconds={},
    )
    return {passage.text for passage in results.passages}


def timed(step: Callable[[int], Any], place: int) -> float:
    """Return the milliseconds of one step."""
    begin = perf_counter()
    step(place)
    return (perf_counter() - begin) * 1000


def summed_up(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    ordered = sorted(milliseconds)
    return {
        "p50": round(median(ordered), 2),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 2),
    }


def recall(kind: IndexKind, vectors: Vectors, scope: Scope) -> float:
    """Return which part of the ten nearest the index finds, over some questions."""
    shares = []
    for place in range(min(COMPARED, len(vectors))):
        question = vectors[place : place + 1]
        nearest = vector.nearest_alone(kind, question, LOCAL_MODEL, scope, exact=True)[:AT]
        indexed = vector.nearest_alone(kind, question, LOCAL_MODEL, scope)[:AT]
        shares.append(len({*indexed} & {*nearest}) / len(nearest))
    return fmean(shares)


def exact_search(kind: IndexKind, vectors: Vectors, scope: Scope) -> None:
    """Compare with every vector in scope."""
    vector.nearest_alone(kind, vectors, LOCAL_MODEL, scope, exact=True)


def count_to_a_million() -> None:
    """Let PostgreSQL do something that only depends on the machine."""
    with connection.cursor() as cursor:
        cursor.execute(REFERENCE)


def embedding(texts: Sequence[str]) -> float:
    """Return the milliseconds it takes to embed one question with the local model."""
    LOCAL.encode(["The first one loads the model."])
    return round(median(timed(lambda n: LOCAL.encode([texts[n]]), n) for n in range(20)), 2)


def reading(texts: Sequence[str], passages: Sequence[str]) -> float:
    """Return the milliseconds it takes to read as many passages as a search does."""
    aligned("The first one loads the model.", passages)
    return round(median(timed(lambda n: aligned(texts[n], passages), n) for n in range(20)), 2)


def postings_bytes() -> int:
    """Return the bytes of the postings and what is counted of them, indexes included."""
    with connection.cursor() as cursor:
        cursor.execute(SIZE)
        return int(cursor.fetchone()[0])


def table(figures: dict[str, Any]) -> Table:
    """Return how fast passages are found, and what the indexes miss."""
    rows = Table("", "p50 ms", "p95 ms", "recall@10", title=f"{figures['chunks']:,} chunks")
    for level, times in figures["levels"].items():
        share = figures["recall"].get(INDEX_OF_LEVEL.get(level, ""), "")
        rows.add_row(level, str(times["p50"]), str(times["p95"]), str(share))
    rows.add_section()
    rows.add_row("fused", str(figures["fused"]["p50"]), str(figures["fused"]["p95"]), "")
    if theirs := figures.get("langchain"):
        name = f"LangChain hybrid, {theirs['ratio_to_fused']} times fused"
        rows.add_row(name, str(theirs["p50"]), str(theirs["p95"]), "")
    rows.add_section()
    rows.add_row("exact search", str(figures["exact_ms"]), "", "1.0")
    rows.add_row("embedding a question", str(figures["embedding_ms"]), "", "")
    rows.add_row("reading the best, token by token", str(figures["reading_ms"]), "", "")
    rows.add_row("counting to a million", str(figures["counting_ms"]), "", "")
    return rows
