"""Retrieval: how well each level of search, and what it makes of them, finds what is relevant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from time import perf_counter

import numpy as np
from django.conf import settings
from django.db import transaction

from assistant.lab.judged_folder import Kept, Unjudgeable
from assistant.lab.ranking import Grades, ndcg, recall, reciprocal_rank
from assistant.lab.ranking import recall as share_found
from knowledge.embedding import Vectors, registry
from knowledge.models import Chunk, Collection, Copy
from knowledge.search import SearchResult, search
from knowledge.search.explanation import Wording
from knowledge.search.levels import weigh
from knowledge.search.scope import Scope, scope_of

LEVELS = ("keyword", "semantic", "hierarchical", "summary")
STATEMENTS = {"keyword": "keyword"}  # the others share one, and its time
FUSED = "fused"
METRICS: Mapping[str, Callable[[Sequence[str], Grades], float]] = {
    "ndcg@10": lambda ranking, grades: ndcg(ranking, grades, 10),
    "recall@5": lambda ranking, grades: recall(ranking, grades, 5),
    "recall@10": lambda ranking, grades: recall(ranking, grades, 10),
    "mrr@10": lambda ranking, grades: reciprocal_rank(ranking, grades, 10),
}
DEEPEST = 10  # documents that any metric looks at
MOST_PASSAGES = 200
P50 = "p50_ms"

Figures = dict[str, dict[str, dict[str, float]]]  # form → level → metric
Watch = Callable[[int, int], None]  # told how many questions are asked, of how many


@dataclass
class Series:
    """What one level did with the questions of one form."""

    values: dict[str, list[float]] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)

    def add(self, ranking: Sequence[str], grades: Grades, milliseconds: float) -> None:
        """Add one question."""
        for name, metric in METRICS.items():
            self.values.setdefault(name, []).append(metric(ranking, grades))
        self.milliseconds.append(milliseconds)

    def means(self) -> dict[str, float]:
        """Return the mean of each metric, and the median of the milliseconds."""
        figures = {name: round(fmean(values), 4) for name, values in self.values.items()}
        return figures | {P50: round(median(self.milliseconds), 2)}


def evaluate(kept: Kept, watch: Watch | None = None) -> Figures:
    """Return nDCG@10, Recall@5, Recall@10 and MRR@10 of each level and of search as a whole.

    Results count by document, at the rank of its best chunk. A level alone is the order in which
    it names chunks; `fused` is the order in which a user's search returns passages, one chunk per
    section: asked for as many as it weighs against each other, and for more until ten documents
    are there. MMR, which chooses when fewer are asked for, leaves none of those out. Milliseconds
    are medians without the time to embed the question: of a level its own, of `fused` the whole
    search. Raises Unjudgeable when the question cannot be embedded.
    """
    identifiers = kept.identifiers()
    forms = kept.judged.forms
    total = len(forms) * len(kept.judged.questions)
    figures: Figures = {}
    for number, form in enumerate(forms):
        series = {level: Series() for level in (*LEVELS, FUSED)}
        for place, question in enumerate(kept.judged.questions):
            asked = question.form(form)
            ask(asked, kept, identifiers, kept.judged.grades[question.id], series)
            if watch:
                watch(number * len(kept.judged.questions) + place + 1, total)
        figures[form] = {level: each.means() for level, each in series.items()}
    return figures


def ask(
    question: str,
    kept: Kept,
    identifiers: Mapping[str, str],
    grades: Grades,
    series: Mapping[str, Series],
) -> None:
    """Search for one question and add what every level found."""
    begin = perf_counter()
    found = search(question, collections=[kept.collection])
    spent = (perf_counter() - begin) * 1000
    if found.error:
        raise Unjudgeable(found.error)
    took = found.stats["ms"]
    deep = searched_deeply(question, kept.collection)
    series[FUSED].add(
        named([each.document_id for each in deep.passages], identifiers),
        grades,
        spent - took["embedding"],
    )
    for level in LEVELS:
        names = named(ranking(deep, level), identifiers)
        series[level].add(names, grades, took[STATEMENTS.get(level, "vectors")])


def searched_deeply(question: str, collection: str) -> SearchResult:
    """Return a search with passages of ten documents, if there are as many."""
    limit = settings.SEARCH_FETCH_K
    while True:
        found = search(question, collections=[collection], limit=limit, explain=True)
        documents = {each.document_id for each in found.passages}
        if len(documents) >= DEEPEST or len(found.passages) < limit or limit >= MOST_PASSAGES:
            return found
        limit *= 2


def ranking(found: SearchResult, level: str) -> list[str]:
    """Return the documents as a level names their chunks for the question itself, best first."""
    if found.explain is None:
        return []
    ranks = [
        (standing.rank, each.document_id)
        for each in found.explain.candidates
        for standing in each.standings
        if standing.level == level and standing.wording == 0
    ]
    return [document for _, document in sorted(ranks)]


def named(documents: Sequence[str], identifiers: Mapping[str, str]) -> list[str]:
    """Return each document once, as it is called in the corpus; others by their own name."""
    return [identifiers.get(each, each) for each in dict.fromkeys(documents)]


def golden_recall(collection: Collection, model: str, at: int = 10) -> float | None:
    """Return the mean share of the marked documents that are among the first `at`, 0 to 1.

    Asked of the vectors of `model`, whether or not the collection is searched by them yet; words
    count as they do in every search. None when no golden question has an answer. No transaction
    is held while questions are embedded. Raises EmbeddingUnavailable and UnknownModel.
    """
    questions = wanted(collection)
    if not questions:
        return None
    vectors = registry.named(model).encode(list(questions), kind="question")
    here = replace(scope_of([collection.name]), models={model: [collection.pk]})
    shares = []
    for (question, documents), vector in zip(questions.items(), vectors, strict=True):
        found = golden_ranking(question, vector, model, here)
        shares.append(share_found(found, dict.fromkeys(documents, 1), at))
    return fmean(shares)


def figures(collection: Collection) -> dict[str, float | None]:
    """Return how many golden questions have an answer, and the recall of the model in use.

    Raises what `recall` raises, and Unjudgeable when no question has an answer.
    """
    questions = len(wanted(collection))
    if not questions:
        raise Unjudgeable(f"{collection.name!r} has no golden question with a source.")
    found = {
        f"recall@{at}": golden_recall(collection, collection.embedding_model, at) for at in (5, 10)
    }
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


def golden_ranking(question: str, vector: Vectors, model: str, here: Scope) -> list[str]:
    """Return the identifiers of the documents of the chunks found, best first, each once."""
    wording = Wording(question, "question", 1.0)
    with transaction.atomic():
        weighed = weigh([wording], {model: vector[np.newaxis]}, here, {})
        best = [weighed.parts[place].chunk for place in weighed.best()]
        documents = dict(Chunk.objects.filter(pk__in=best).values_list("pk", "document_id"))
    return list(dict.fromkeys(documents[chunk] for chunk in best if chunk in documents))
