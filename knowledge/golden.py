"""Golden questions: how many of the documents that answer them a search finds."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from django.db import transaction

from knowledge.embedding import Vectors, registry
from knowledge.errors import KnowledgeError
from knowledge.models import Chunk, Collection, Copy
from knowledge.search import search
from knowledge.search.explanation import Wording
from knowledge.search.levels import weigh
from knowledge.search.scope import Scope, scope_of

DEPTHS = (5, 10)
Watch = Callable[[int, int], None]  # told how many questions are asked, of how many


class NothingGolden(KnowledgeError):
    """The collection has no golden question."""

    code = "nothing_golden"


def rankings(collection: Collection) -> dict[str, list[str]]:
    """Return answerable question → ids of the documents found, best first.

    Searched by the model in use; words count as they do in every search. No transaction is held
    while questions are embedded. Raises EmbeddingUnavailable, UnknownModel, and NothingGolden when
    no question has an answer.
    """
    questions = answers(collection)
    if not questions:
        raise NothingGolden(f"{collection.name!r} has no golden question with a source.")
    model = collection.embedding_model
    vectors = registry.named(model).encode(list(questions), kind="question")
    scope = scope_of([collection.name])
    return {
        question: ranking(question, {model: vector[np.newaxis]}, scope)
        for question, vector in zip(questions, vectors, strict=True)
    }


def answers(collection: Collection) -> dict[str, set[str]]:
    """Return question → ids of the documents that answer it, where there are any.

    A source that is a copy of another stands for the document that is stored.
    """
    by_source = dict(collection.documents.values_list("source", "id"))
    copies = Copy.objects.filter(collection=collection)
    by_source |= dict(copies.values_list("source", "document_id"))
    golden = collection.golden_questions.values_list("question", "sources")
    return {
        question: {by_source.get(source, source) for source in sources}
        for question, sources in golden
        if sources
    }


def ranking(question: str, vectors: dict[str, Vectors], scope: Scope) -> list[str]:
    """Return the identifiers of the documents of the chunks found, best first, each once."""
    wording = Wording(question, "question", 1.0)
    with transaction.atomic():
        weighed = weigh([wording], vectors, scope, {})
        best = [weighed.parts[place].chunk for place in weighed.best()]
        documents = dict(Chunk.objects.filter(pk__in=best).values_list("pk", "document_id"))
    return list(dict.fromkeys(documents[chunk] for chunk in best if chunk in documents))


def figures(collection: Collection, found: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return how many golden questions have an answer, and the mean recall of their documents."""
    wanted = answers(collection)
    values: dict[str, float] = {"questions": len(found)}
    for depth in DEPTHS:
        shares = [
            len(wanted[question] & set(documents[:depth])) / len(wanted[question])
            for question, documents in found.items()
            if question in wanted
        ]
        values[f"recall@{depth}"] = fmean(shares) if shares else 0.0
    return values


def judged(collection: Collection, watch: Watch | None = None) -> dict[str, Any]:
    """Ask the collection all its golden questions; return figures and what came of each.

    Of each question `sources`, the `rank` of the first document that answers it (None: not found),
    whether an answer would be `declined`, and whether that is `right`. Raises NothingGolden,
    EmbeddingUnavailable and UnknownModel.
    """
    golden = list(collection.golden_questions.values_list("question", "sources"))
    if not golden:
        raise NothingGolden(f"{collection.name!r} has no golden question.")
    wanted = answers(collection)
    found = rankings(collection) if wanted else {}
    rows = []
    for place, (question, sources) in enumerate(golden, start=1):
        ranks = [
            rank
            for rank, document in enumerate(found.get(question, ()), start=1)
            if document in wanted[question]
        ]
        declined = search(question, collections=[collection.name]).no_context
        is_found = bool(ranks) and ranks[0] <= max(DEPTHS)
        rows.append(
            {
                "question": question,
                "sources": sources,
                "rank": ranks[0] if ranks else None,
                "declined": declined,
                "right": (is_found and not declined) if sources else declined,
            }
        )
        if watch:
            watch(place, len(golden))
    unanswerable = [row for row in rows if not row["sources"]]
    return {
        "figures": figures(collection, found) if found else {"questions": 0},
        "right": sum(row["right"] for row in rows),
        "unanswerable": len(unanswerable),
        "declined": sum(row["declined"] for row in unanswerable),
        "rows": sorted(rows, key=lambda row: row["right"]),
    }
