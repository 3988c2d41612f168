"""Confidence: whether what was found can carry an answer. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.search.results import Quality

# How many of the nearest passages say how near something always is.
COMPARED = 24
# What they count, and what the words of the question count that a passage holds.
ALWAYS, WORDS = 0.5, 0.5
# Between the threshold and what questions about something else usually reach, where nothing was
# calibrated: of all-MiniLM-L6-v2 and four judged collections it is 0.10 to 0.20.
SCALE = 0.15
# Confidence so far above the threshold needs no second look: half of what words can add.
EXCELLENT = 0.25


@dataclass(frozen=True)
class Bar:
    """What the passages of a collection are measured against."""

    threshold: float  # the least confidence that can carry an answer
    scale: float = SCALE  # a passage farther below is no hit at all


@dataclass(frozen=True)
class Verdict:
    """How far the passages of a search can be trusted."""

    quality: Quality
    no_context: bool
    usable: int
    best_cosine: float | None
    confidence: float | None  # about -0.5 to 1
    threshold: float  # of the best passage's collection


def confidences(cosines: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Return for each passage how sure it is that it answers the question: about -0.5 to 1.

    cosine - (mean of the 24 nearest) / 2 + share / 2. To be near says that a passage is about the
    same subject; to be nearer than all the others about it, and to hold the question's rare words
    (`shares`, of their weight, 0 to 1), that it is about the question.

    Area under the curve of the best passage's, measured with all-MiniLM-L6-v2 on 480 support
    questions, 96 of them without an answer, over 337 technical notes and 133 other pages: 0.75;
    by its cosine alone 0.68, by the mean of three 0.62. Questions about something else are told
    from those of three judged collections with 0.97 to 1.00.
    """
    nearest = np.sort(np.asarray(cosines))[::-1][:COMPARED]
    values = np.asarray(cosines) - ALWAYS * nearest.mean() + WORDS * np.asarray(shares)
    return [float(value) for value in values]


def judge(
    cosines: Sequence[float | None],
    shares: Sequence[float],
    bars: Sequence[Bar],
    *,
    min_hits: int,
    chunks: int,
) -> Verdict:
    """Judge a search by the passages it considered, in whatever order.

    `shares` is how much of the question's words each holds, `bars` what its collection is
    measured against. There is no context when the confidence is under the threshold, or when
    fewer than `min_hits` passages are usable and the best one is not excellent by itself.
    `chunks` is how many there are to be found at all: where that is less than 24, in proportion
    fewer need be usable, for a page of five cannot speak of everything three times. Without any
    cosine (no embedding), keyword hits are at best good.
    """
    needed = max(1, min(min_hits, min_hits * chunks // COMPARED))
    places_with_cosine = [place for place, cosine in enumerate(cosines) if cosine is not None]
    if not places_with_cosine:
        is_enough = len(cosines) >= needed
        quality: Quality = "good" if is_enough else "poor"
        threshold = bars[0].threshold if bars else 0.0
        return Verdict(quality, not is_enough, len(cosines), None, None, threshold)
    scaled = on_one_scale(
        [cosines[place] or 0.0 for place in places_with_cosine],
        [bars[place] for place in places_with_cosine],
    )
    values = confidences(scaled.cosines, [shares[place] for place in places_with_cosine])
    confidence = max(values)
    usable = sum(value >= scaled.bar.threshold - scaled.bar.scale for value in values)
    excellent = confidence >= scaled.bar.threshold + EXCELLENT
    poor = confidence < scaled.bar.threshold or (usable < needed and not excellent)
    quality = "poor" if poor else "excellent" if excellent else "good"
    return Verdict(quality, poor, usable, scaled.best, confidence, scaled.bar.threshold)


@dataclass(frozen=True)
class ScaledCosines:
    """Cosines as if all passages were of one collection, that of the best."""

    cosines: list[float]
    bar: Bar
    best: float  # cosine as it was


def on_one_scale(cosines: Sequence[float], bars: Sequence[Bar]) -> ScaledCosines:
    """Return cosines of several collections, perhaps of several embedding models, as of one.

    What lies as many scales above its own threshold is as good.
    """
    above = [(each - bar.threshold) / bar.scale for each, bar in zip(cosines, bars, strict=True)]
    best = int(np.argmax(above))
    bar = bars[best]
    return ScaledCosines([bar.threshold + each * bar.scale for each in above], bar, cosines[best])
