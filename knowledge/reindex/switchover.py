"""Switchover: searches use another model's vectors once these find what those of the old did."""

import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from time import sleep

import numpy as np
from django.db import connection, transaction
from django.utils.timezone import now
from numpy.typing import NDArray
from pgvector import HalfVector

from knowledge import calibration
from knowledge.calibration import own_questions
from knowledge.embedding import Embedder, registry
from knowledge.errors import EmbeddingUnavailable
from knowledge.ingestion.backfill import fill, is_whole
from knowledge.ingestion.store import lock_collection
from knowledge.models import Collection, Copy, Ingest

RECALL_AT = 10  # documents
# How much recall may be lost and still hold: two of a hundred questions.
LOSS = 0.02
QUESTIONS = 300

# While documents keep coming, there is always one that lacks its vector: after so many rounds the
# collection is switched without it, and it gets its vector right after.
ROUNDS = 10
PAUSE_SECONDS = 1.0

# Exact, so that no index has a say in it; the documents of the nearest chunks.
NEAREST = """
SELECT chunk.document_id
FROM knowledge_chunkvector AS vector JOIN knowledge_chunk AS chunk ON chunk.id = vector.chunk_id
WHERE vector.collection_id = %(collection)s AND vector.model = %(model)s
GROUP BY chunk.document_id ORDER BY min(vector.embedding <=> %(question)s::halfvec) LIMIT %(limit)s
"""

log = logging.getLogger(__name__)

Questions = Mapping[str, set[str]]  # question → ids of the documents that answer it


@dataclass(frozen=True)
class Comparison:
    """Recall@10 of documents under two models: of those that answer, the mean share found."""

    basis: str
    questions: int
    before: float | None  # None when the model in use could not be asked
    after: float
    problem: str = ""

    @property
    def holds(self) -> bool:
        """Whether the new model finds what the one in use does."""
        return self.before is not None and self.after >= self.before - LOSS

    @property
    def verdict(self) -> str:
        """The outcome, as a sentence."""
        if self.before is None:
            return f"The model in use cannot be compared with: {self.problem}"
        if not self.questions:
            return f"There is nothing to compare by: no {self.basis}."
        sentence = (
            f"Recall@{RECALL_AT} on {self.questions} {self.basis}: "
            f"{self.before:.3f} before, {self.after:.3f} after"
        )
        return f"{sentence}; {'it holds' if self.holds else 'it does not hold'}."


def compare(collection: Collection, before: str, after: str) -> Comparison:
    """Ask the collection's golden questions of both models' vectors, which must all be there.

    Without golden questions, titles and headings are asked, and the document they stand in is to
    be found. Raises EmbeddingUnavailable when the new model fails; the old one may.
    """
    basis, questions = questions_of(collection)
    recall_after = recall(collection, after, questions)
    try:
        recall_before = recall(collection, before, questions)
    except EmbeddingUnavailable as error:
        return Comparison(basis, len(questions), None, recall_after, str(error))
    return Comparison(basis, len(questions), recall_before, recall_after)


def questions_of(collection: Collection) -> tuple[str, Questions]:
    """Return what kind of questions there are, and the questions."""
    if golden := golden_questions(collection):
        return "golden questions", golden
    samples = own_questions(collection)
    return "titles and headings", {each.text: {each.document} for each in samples}


def golden_questions(collection: Collection) -> Questions:
    """Return the golden questions whose answers are in the collection, at most 300 of them."""
    copies = Copy.objects.filter(collection=collection).values_list("source", "document")
    documents = dict(copies) | dict(collection.documents.values_list("source", "pk"))
    answerable = {
        question: answers
        for question, sources in collection.golden_questions.values_list("question", "sources")
        if (answers := {documents[source] for source in sources if source in documents})
    }
    if len(answerable) <= QUESTIONS:
        return answerable
    sample = random.Random(collection.name).sample(sorted(answerable), QUESTIONS)  # noqa: S311
    return {question: answerable[question] for question in sample}


def recall(collection: Collection, model: str, questions: Questions) -> float:
    """Return the mean share of answering documents among the first ten; 1 without questions."""
    if not questions:
        return 1.0
    vectors = registry.named(model).encode([*questions], kind="question")
    shares = [
        len(answers & {*nearest(collection, model, vector)}) / min(len(answers), RECALL_AT)
        for answers, vector in zip(questions.values(), vectors, strict=True)
    ]
    return sum(shares) / len(shares)


def nearest(collection: Collection, model: str, vector: NDArray[np.float32]) -> list[str]:
    """Return the ids of the ten documents nearest to the vector."""
    with connection.cursor() as cursor:
        cursor.execute(
            NEAREST,
            {
                "collection": collection.pk,
                "model": model,
                "question": HalfVector(vector).to_text(),
                "limit": RECALL_AT,
            },
        )
        return [document for (document,) in cursor.fetchall()]


def switch(collection: Collection, embedder: Embedder) -> int:
    """Let searches use the model from now on; return how many chunks were filled on the way.

    Ends when everything has its vector, that of jobs included that were at work. Raises
    EmbeddingUnavailable.
    """
    filled = 0
    for left in reversed(range(ROUNDS)):
        with transaction.atomic():
            # No document can be stored between the look and the switch.
            lock_collection(collection)
            if is_whole(collection, embedder.name) or not left:
                collection.embedding_model = embedder.name
                collection.save(update_fields=["embedding_model"])
                break
        filled += fill(collection, embedder)
    filled += fill_running_jobs(collection, embedder, now())
    try:
        calibration.refresh(collection)
    except (calibration.Uncalibrated, EmbeddingUnavailable) as error:
        # It is switched all the same; until it is calibrated, the setting's threshold holds.
        log.warning("%s with %s is not calibrated: %s", collection.name, embedder.name, error)
    return filled


def fill_running_jobs(collection: Collection, embedder: Embedder, moment: datetime) -> int:
    """Fill what is stored by jobs from before `moment`: they make vectors of the former model."""
    filled = 0
    while True:
        # Asked before filling: what the last of them stored is then filled, too.
        is_last = not has_running_jobs(collection, moment)
        filled += fill(collection, embedder)
        if is_last:
            return filled
        sleep(PAUSE_SECONDS)


def has_running_jobs(collection: Collection, moment: datetime) -> bool:
    """Whether a worker is at a job of the collection that it began before."""
    ingests = Ingest.objects.filter(collection=collection, kind=Ingest.Kind.INGEST)
    running = ingests.filter(status=Ingest.Status.RUNNING)
    return running.filter(started__lt=moment, lease_until__gte=now()).exists()
