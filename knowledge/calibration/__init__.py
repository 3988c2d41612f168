"""Calibration: finds out what confidence means in one collection, by asking it."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.utils.timezone import now

from knowledge.embedding import registry
from knowledge.errors import KnowledgeError
from knowledge.identifiers import MULTILINGUAL_MODEL
from knowledge.models import Calibration, Chunk, Collection, Document, GoldenQuestion, Section
from knowledge.search import search
from knowledge.search.confidence import confidences
from knowledge.search.explanation import ConsideredChunk

EVERYDAY = Path(__file__).with_name("everyday.txt")
EVERYDAY_ACROSS = Path(__file__).with_name("everyday_across.tsv")
# Titles of other collections are fewer than everyday questions, so that a neighbour about the same
# subject cannot make up the upper quarter.
OTHERS_LIMIT = 50
OWN_LIMIT = 100
FEWEST_WORDS = 3  # "Overview" and "See also" ask for nothing
# Of questions about something else this share may pass; raised where it costs little, the
# threshold still need not be higher than where next to none does.
FALSE_ALARMS, NONE = 0.05, 0.001
# Of a normal distribution: how many standard deviations above the middle that share begins, and
# the upper quarter.
DEVIATIONS = {FALSE_ALARMS: 1.645, NONE: 3.090}
QUARTER = 0.674
# Of questions that can be answered this share may be refused, and at most that.
MISSES, MOST_MISSES = 0.05, 0.10
# Golden questions of a kind that say more than what was made up.
FEWEST_GOLDEN = 20
NARROWEST = 0.02  # scale, so that a model that puts everything in one place divides by no zero
# Where fewer are compared, one more document changes everything.
FEWEST_CHUNKS = 30
GROWTH = 2.0  # nearest passages come nearer as a collection grows
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Watch = Callable[[int, int], None]  # told how many questions are asked, of how many


class Uncalibrated(KnowledgeError):
    """The collection cannot be calibrated."""

    code = "uncalibrated"


@dataclass(frozen=True)
class Sample:
    """A question, and the document whose words it was made of."""

    text: str
    document: str = ""
    language: str = ""  # where it may be another than the documents'


@dataclass(frozen=True)
class Scores:
    """The confidences of a search with four kinds of questions."""

    foreign: Sequence[float]  # about something else
    own: Sequence[float]  # made of the collection's titles and headings
    answerable: Sequence[float] = ()  # golden questions whose answer somebody found
    unanswerable: Sequence[float] = ()  # golden questions that have none

    @property
    def is_golden(self) -> bool:
        """Whether there are enough golden questions to go by."""
        return len(self.answerable) >= FEWEST_GOLDEN

    @property
    def good(self) -> Sequence[float]:
        """The best there is for questions the collection answers."""
        return self.answerable if self.is_golden else self.own

    @property
    def bad(self) -> Sequence[float]:
        """The best there is for questions it does not answer."""
        golden = self.is_golden and len(self.unanswerable) >= FEWEST_GOLDEN
        return self.unanswerable if golden else self.foreign


@dataclass(frozen=True)
class Choice:
    """A threshold, the scale that goes with it, and why it lies there."""

    threshold: float
    scale: float
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What a calibration found."""

    collection: Collection
    model: str
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
            "model": self.model,
            "threshold": round(self.choice.threshold, 4),
            **self.report,
        }

    def keep(self) -> Calibration:
        """Let searches go by it from now on."""
        calibration, _ = Calibration.objects.update_or_create(
            collection=self.collection,
            model=self.model,
            defaults={
                "threshold": self.choice.threshold,
                "report": self.report,
                "created": now(),
            },
        )
        return calibration


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
        "foreign": [*everyday(), *foreign_questions(collection)],
        "own": own_questions(collection),
        "answerable": [Sample(question) for question, sources in golden if sources],
        "unanswerable": [Sample(question) for question, sources in golden if not sources],
    }
    texts = [sample.text for samples in kinds.values() for sample in samples]
    # Together, and remembered: every search embeds its question again.
    registry.named(collection.embedding_model).encode(texts, kind="question")
    done = 0
    by_kind: dict[str, list[float]] = {name: [] for name in kinds}
    for name, samples in kinds.items():
        for sample in samples:
            by_kind[name] += best_confidence(sample, collection)
            done += 1
            if watch:
                watch(done, len(texts))
    scores = Scores(**by_kind)
    return Outcome(collection, collection.embedding_model, chunks, scores, choose(scores))


def calibrate_across(collection: Collection) -> Outcome | None:
    """Ask the collection, in languages that it is not in, what it cannot answer.

    What it can answer nobody has asked in other languages: the threshold lies where one in twenty
    foreign questions passes. Nothing is stored. None where questions in another language are not
    searched for by the multilingual model. Takes 48 searches. Raises Uncalibrated and
    EmbeddingUnavailable.
    """
    foreign: list[float] = []
    for sample in everyday_across():
        results = search(
            sample.text, collections=[collection.name], spoken=sample.language, reads=False
        )
        if results.error:
            raise Uncalibrated(results.error)
        if results.stats["is_foreign"] and results.stats["confidence"] is not None:
            foreign.append(results.stats["confidence"])
    if not foreign:
        return None
    scores = Scores(foreign=foreign, own=[])
    return Outcome(collection, MULTILINGUAL_MODEL, results.stats["chunks"], scores, choose(scores))


def best_confidence(sample: Sample, collection: Collection) -> Sequence[float]:
    """Return the confidence of a search, nothing when only its own document is found."""
    results = search(sample.text, collections=[collection.name], reads=False, explain=True)
    if results.error or results.explain is None:
        raise Uncalibrated(results.error)
    others = [
        candidate
        for candidate in results.explain.candidates
        if candidate.cosine is not None and candidate.document_id != sample.document
    ][: 2 * settings.SEARCH_FETCH_K]  # as many as a search judges by
    shares = [keyword_share(candidate) for candidate in others]
    sure = confidences([candidate.cosine or 0.0 for candidate in others], shares)
    return [max(sure)] if sure else []


def keyword_share(considered: ConsideredChunk) -> float:
    """Return how much of the question's words the passage holds."""
    return max((each.score for each in considered.standings if each.level == "keyword"), default=0)


def is_due(collection: Collection) -> bool:
    """Tell whether searches would judge better after a calibration.

    So they do when there is none of the collection's embedding model, or one of when it was half
    as large.
    """
    chunks = Chunk.objects.filter(document__collection=collection).count()
    latest = collection.calibrations.filter(model=collection.embedding_model).first()
    chunks_then = latest.report.get("chunks", 0) if latest else 0
    return chunks >= FEWEST_CHUNKS and chunks >= GROWTH * chunks_then


def refresh(collection: Collection) -> None:
    """Calibrate the collection if that is due. Raises Uncalibrated and EmbeddingUnavailable."""
    if is_due(collection):
        calibrate(collection).keep()


@cache
def everyday() -> tuple[Sample, ...]:
    """Return 200 questions of everyday life, ten about each of twenty subjects."""
    lines = EVERYDAY.read_text(encoding="utf-8").splitlines()
    return tuple(Sample(line) for line in lines if line and not line.startswith("#"))


@cache
def everyday_across() -> tuple[Sample, ...]:
    """Return six questions of everyday life in each of eight languages."""
    lines = EVERYDAY_ACROSS.read_text(encoding="utf-8").splitlines()
    rows = [line.partition("\t") for line in lines if line and not line.startswith("#")]
    return tuple(Sample(text, language=language) for language, _, text in rows)


def foreign_questions(collection: Collection) -> list[Sample]:
    """Return what is asked of other collections: their golden questions and titles."""
    golden = GoldenQuestion.objects.exclude(collection=collection)
    questions = [Sample(each) for each in golden.values_list("question", flat=True)]
    documents = Document.objects.exclude(collection=collection)
    samples = [*questions, *titles(documents.values_list("title", "id"))]
    return subset(samples, collection, OTHERS_LIMIT)


def own_questions(collection: Collection) -> list[Sample]:
    """Return titles and headings of the collection as questions.

    Their own words would find their own document at once; whoever uses them leaves it out.
    """
    sections = Section.objects.filter(document__collection=collection)
    headings = [
        (path[-1], document)
        for path, document in sections.exclude(path=[]).values_list("path", "document")
    ]
    samples = titles([*collection.documents.values_list("title", "id"), *headings])
    return subset(samples, collection, OWN_LIMIT)


def titles(rows: Iterable[tuple[str, str]]) -> list[Sample]:
    """Return of (title, document) what could be what somebody asks for, each once."""
    samples = {
        title: Sample(title, document)
        for title, document in rows
        if len(re.findall(r"[^\W\d_]{2,}", title)) >= FEWEST_WORDS
    }
    return list(samples.values())


def subset(samples: list[Sample], collection: Collection, limit: int) -> list[Sample]:
    """Return at most `limit` of them, the same whenever nothing has changed."""
    if len(samples) <= limit:
        return samples
    ordered = sorted(samples, key=lambda each: (each.text, each.document))
    return random.Random(collection.name).sample(ordered, limit)  # noqa: S311


def choose(scores: Scores) -> Choice:
    """Return the threshold for these scores; `foreign` must not be empty.

    With golden questions: where they are best parted from those without an answer (Youden's J).
    Without: where one in twenty foreign questions passes (the rule of Neyman and Pearson: they
    are real questions, the own ones are not), higher as long as nineteen of twenty own ones pass
    and foreign ones still do, for questions about the same subject without an answer lie between.
    In both cases nine of ten that can be answered pass, and half of the foreign ones do not.
    """
    usual = float(np.median(scores.foreign))
    threshold, reason = (
        by_golden_questions(scores) if scores.is_golden else by_foreign_questions(scores)
    )
    if len(scores.good) and threshold > (most := float(np.quantile(scores.good, MOST_MISSES))):
        threshold = most
        reason = f"{MOST_MISSES:.0%} of the questions that can be answered are refused"
    if threshold < usual + NARROWEST:
        threshold = usual + NARROWEST
        reason = "half of the questions about something else pass; they cannot be told better"
    return Choice(threshold, threshold - usual, reason)


def by_golden_questions(scores: Scores) -> tuple[float, str]:
    """Return the threshold by golden questions, and why."""
    threshold, _ = best_threshold(scores.answerable, scores.bad)
    return threshold, "parts the golden questions best"


def by_foreign_questions(scores: Scores) -> tuple[float, str]:
    """Return the threshold by foreign and own questions, and why."""
    few, none = upper_quantile(scores.foreign, FALSE_ALARMS), upper_quantile(scores.foreign, NONE)
    cheap = float(np.quantile(scores.own, MISSES)) if len(scores.own) else few
    if cheap <= few:
        return few, f"about {FALSE_ALARMS:.0%} of the questions about something else pass"
    if cheap <= none:
        return cheap, f"{MISSES:.0%} of its own titles are refused"
    return none, "next to no question about something else passes"


def upper_quantile(scores: Sequence[float], share: float) -> float:
    """Return what that share of the scores would exceed if all were about something else.

    A few foreign questions always turn out to be answered, and they score highest. So the
    quantile is not read off but extrapolated from the upper quarter of a normal distribution,
    which holds as long as fewer than a quarter are answered.
    """
    middle, quarter = np.quantile(scores, [0.5, 0.75])
    return float(middle + DEVIATIONS[share] / QUARTER * (quarter - middle))


def best_threshold(positives: Sequence[float], negatives: Sequence[float]) -> tuple[float, float]:
    """Return the threshold that parts both best, and Youden's J there (0 to 1).

    J = share of positives at or above it + share of negatives below it - 1 (Youden 1950). Half
    way between two neighbouring scores; of several equally good ones the lowest.
    """
    scores = np.unique([*positives, *negatives])
    if not len(scores):
        return 0.0, 0.0
    accepted = 1 - np.searchsorted(np.sort(positives), scores, side="left") / max(1, len(positives))
    refused = np.searchsorted(np.sort(negatives), scores, side="left") / max(1, len(negatives))
    gain = accepted + refused - 1
    best = int(gain.argmax())
    below = scores[max(0, best - 1)]
    middle = (below + scores[best]) / 2
    # Between two floats that are neighbours lies nothing.
    return float(middle if middle > below else scores[best]), float(gain[best])
