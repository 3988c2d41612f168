"""Calibration: finds out what confidence means in one collection, by asking it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.conf import settings
from django.utils.timezone import now

from knowledge.calibration.samples import Sample, everyday, of_itself, of_others
from knowledge.calibration.threshold import Choice, Scores, chosen
from knowledge.embedding import models
from knowledge.errors import KnowledgeError
from knowledge.models import Calibration, Chunk, Collection
from knowledge.search import search
from knowledge.search.explanation import Considered
from knowledge.search.quality import confidences

# Where fewer are compared, one more document changes everything.
FEWEST_CHUNKS = 30
GROWTH = 2.0  # nearest passages come nearer as a collection grows
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Watch = Callable[[int, int], None]  # told how many questions are asked, of how many


class Uncalibrated(KnowledgeError):
    """The collection cannot be calibrated."""

    code = "uncalibrated"


@dataclass(frozen=True)
class Outcome:
    """What a calibration found."""

    collection: Collection
    chunks: int
    scores: Scores
    choice: Choice

    @property
    def report(self) -> dict[str, Any]:
        """What the threshold was derived from, as JSON values."""
        kinds = {name: list(values) for name, values in vars(self.scores).items() if len(values)}
        threshold = self.choice.threshold
        return {
            "scale": round(self.choice.scale, 4),
            "reason": self.choice.reason,
            "chunks": self.chunks,
            "questions": {name: len(values) for name, values in kinds.items()},
            "quantiles": {
                name: np.quantile(values, QUANTILES).round(4).tolist()
                for name, values in kinds.items()
            },
            "passing": {
                name: round(sum(each >= threshold for each in values) / len(values), 4)
                for name, values in kinds.items()
            },
        }

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "collection": self.collection.name,
            "model": self.collection.embedding_model,
            "threshold": round(self.choice.threshold, 4),
            **self.report,
        }

    def keep(self) -> Calibration:
        """Let searches go by it from now on."""
        kept, _ = Calibration.objects.update_or_create(
            collection=self.collection,
            model=self.collection.embedding_model,
            defaults={
                "threshold": self.choice.threshold,
                "report": self.report,
                "created": now(),
            },
        )
        return kept


def calibrate(collection: Collection, watch: Watch | None = None) -> Outcome:
    """Ask the collection what it cannot and what it should be able to answer; nothing is stored.

    Foreign are 200 everyday questions and what is asked of other collections. Own are titles and
    headings, asked as if somebody else had written about the subject: the document they stand in
    is left out. With it they would find themselves; without, they score a little lower than real
    questions do (on 337 technical notes and 133 other pages 5 % of them below 0.33 and half below
    0.54, of 384 real ones 0.34 and 0.63), which errs on the side of answering. Golden questions
    are taken as they are. No transaction is held meanwhile. Takes about 350 searches. Raises
    Uncalibrated and EmbeddingUnavailable.
    """
    chunks = Chunk.objects.filter(document__collection=collection).count()
    if not chunks:
        raise Uncalibrated(f"There is nothing in {collection.name!r} that could be searched.")
    golden = list(collection.golden_questions.values_list("question", "sources"))
    kinds: dict[str, list[Sample]] = {
        "foreign": [*everyday(), *of_others(collection)],
        "own": of_itself(collection),
        "answerable": [Sample(question) for question, sources in golden if sources],
        "unanswerable": [Sample(question) for question, sources in golden if not sources],
    }
    texts = [sample.text for samples in kinds.values() for sample in samples]
    # Together, and remembered: every search embeds its question again.
    models.named(collection.embedding_model).encode(texts, kind="question")
    done = 0
    scores: dict[str, list[float]] = {name: [] for name in kinds}
    for name, samples in kinds.items():
        for sample in samples:
            scores[name] += asked(sample, collection)
            done += 1
            if watch:
                watch(done, len(texts))
    measured = Scores(**scores)
    return Outcome(collection, chunks, measured, chosen(measured))


def asked(sample: Sample, collection: Collection) -> Sequence[float]:
    """Return the confidence of a search, nothing when only its own document is found."""
    found = search(sample.text, collections=[collection.name], explain=True)
    if found.error or found.explain is None:
        raise Uncalibrated(found.error)
    others = [
        each
        for each in found.explain.candidates
        if each.cosine is not None and each.document_id != sample.document
    ][: 2 * settings.SEARCH_FETCH_K]  # as many as a search judges by
    sure = confidences([each.cosine or 0.0 for each in others], [share(each) for each in others])
    return [max(sure)] if sure else []


def share(considered: Considered) -> float:
    """Return how much of the question's words the passage holds."""
    return max((each.score for each in considered.standings if each.level == "keyword"), default=0)


def is_due(collection: Collection) -> bool:
    """Tell whether searches would judge better after a calibration.

    So they do when there is none of the collection's embedding model, or one of when it was half
    as large.
    """
    chunks = Chunk.objects.filter(document__collection=collection).count()
    known = collection.calibrations.filter(model=collection.embedding_model).first()
    then = known.report.get("chunks", 0) if known else 0
    return chunks >= FEWEST_CHUNKS and chunks >= GROWTH * then


def refresh(collection: Collection) -> None:
    """Calibrate the collection if that is due. Raises Uncalibrated and EmbeddingUnavailable."""
    if is_due(collection):
        calibrate(collection).keep()
