"""Golden: how much of what somebody marked as the answer a collection's search finds."""

from dataclasses import replace
from statistics import fmean

import numpy as np
from django.db import transaction

from knowledge.embedding import Vectors, models
from knowledge.evaluation.lines import Unjudgeable
from knowledge.evaluation.metrics import recall as share_found
from knowledge.models import Chunk, Collection, Copy
from knowledge.search.explanation import Wording
from knowledge.search.levels import weigh
from knowledge.search.scope import Scope, scope_of


def recall(collection: Collection, model: str, at: int = 10) -> float | None:
    """Return the mean share of the marked documents that are among the first `at`, 0 to 1.

    Asked of the vectors of `model`, whether or not the collection is searched by them yet; words
    count as they do in every search. None when no golden question has an answer. No transaction
    is held while questions are embedded. Raises EmbeddingUnavailable and UnknownModel.
    """
    questions = wanted(collection)
    if not questions:
        return None
    vectors = models.named(model).encode(list(questions), kind="question")
    here = replace(scope_of([collection.name]), models={model: [collection.pk]})
    shares = []
    for (question, documents), vector in zip(questions.items(), vectors, strict=True):
        found = ranking(question, vector, model, here)
        shares.append(share_found(found, dict.fromkeys(documents, 1), at))
    return fmean(shares)


def figures(collection: Collection) -> dict[str, float | None]:
    """Return how many golden questions have an answer, and the recall of the model in use.

    Raises what `recall` raises, and Unjudgeable when no question has an answer.
    """
    questions = len(wanted(collection))
    if not questions:
        raise Unjudgeable(f"{collection.name!r} has no golden question with a source.")
    found = {f"recall@{at}": recall(collection, collection.embedding_model, at) for at in (5, 10)}
    return {"questions": questions, **found}


def wanted(collection: Collection) -> dict[str, set[str]]:
    """Return question → identifiers of the documents that answer it, where there are any.

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


def ranking(question: str, vector: Vectors, model: str, here: Scope) -> list[str]:
    """Return the identifiers of the documents of the chunks found, best first, each once."""
    wording = Wording(question, "question", 1.0)
    with transaction.atomic():
        weighed = weigh([wording], {model: vector[np.newaxis]}, here, {})
        best = [weighed.parts[place].chunk for place in weighed.best()]
        documents = dict(Chunk.objects.filter(pk__in=best).values_list("pk", "document_id"))
    return list(dict.fromkeys(documents[chunk] for chunk in best if chunk in documents))
