"""Confidence: whether what was found can carry an answer. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from knowledge.embedding.local import MIDDLE, SPREAD
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
# What makes a place the answer: its confidence above the threshold, and below it once more, and the
# part of its score by which it leads the next document. Logistic regression over 480 support
# questions to 337 technical notes, and 390 made up from the pages of five products, whose answer
# stood in the first document or did not, and 220 everyday questions to each of these at a quarter
# of the weight: .03 of those are more likely answered than not. Each collection was calibrated.
# Fitted to four of the sets, the area under the curve of the fifth is .88, .88, .85, .74 and .72;
# by the lead over the third document behind it .87, .85, .84, .69 and .71. That was before the best
# chunks were read token by token. Since then more first places are right, and fitted anew to six
# sets it answers a few more questions and as many wrongly; as it is, of .8 and more .77 to 1.00
# hold, .94 on the sixth, by which nothing was fitted.
ABOVE, BELOW, LEAD, BIAS = 5.9, 12.4, 6.6, -1.65
# Of a collection with a single document nothing tells by how much it leads: the mean of those sets.
USUAL_LEAD = 0.17


@dataclass(frozen=True)
class Bar:
    """What the passages of a collection are measured against."""

    threshold: float  # the least confidence that can carry an answer
    scale: float = SCALE  # a passage farther below is no hit at all
    # Whether the question is in another language: then the multilingual model's cosines count, and
    # no words, for those that both languages have are in them by accident.
    is_foreign: bool = False

    def cosine(self, cosine: float) -> float:
        """Return a cosine as the local model would have it."""
        return SPREAD * (cosine - MIDDLE) if self.is_foreign else cosine

    def share(self, share: float) -> float:
        """Return how much the words count that a passage shares with the question."""
        return 0.0 if self.is_foreign else share


@dataclass(frozen=True)
class Verdict:
    """How far the passages of a search can be trusted."""

    quality: Quality
    no_context: bool
    usable: int
    best_cosine: float | None
    confidence: float | None  # about -0.5 to 1
    threshold: float  # of the best passage's collection
    certainty: float | None = None  # how likely the first passage answers, 0 to 1


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


def certainty(above: float, lead: float) -> float:
    """Return how likely the first passage of a search holds the answer, 0 to 1.

    `above` is by how much the confidence exceeds its threshold, `lead` as `lead` returns it.
    """
    return 1 / (1 + exp(-(ABOVE * above + BELOW * min(above, 0.0) + LEAD * lead + BIAS)))


def lead(scores: Sequence[float], documents: Sequence[object]) -> float:
    """Return by what part of its score the best passage exceeds that of the next document.

    `scores` come best first. What two documents treat alike, neither answers in particular.
    """
    ranked = zip(scores, documents, strict=True)
    following = next((score for score, document in ranked if document != documents[0]), None)
    if following is None or scores[0] <= 0:
        return USUAL_LEAD
    return min(1.0, 1 - following / scores[0])


def judge(
    cosines: Sequence[float | None],
    shares: Sequence[float],
    bars: Sequence[Bar],
    *,
    min_hits: int,
    chunks: int,
    ahead: float = USUAL_LEAD,
) -> Verdict:
    """Judge a search by the passages it considered, in whatever order.

    `shares` is how much of the question's words each holds, `bars` what its collection is
    measured against. There is no context when the confidence is under the threshold, or when
    fewer than `min_hits` passages are usable and the best one is not excellent by itself.
    `chunks` is how many there are to be found at all: where that is less than 24, in proportion
    fewer need be usable, for a page of five cannot speak of everything three times. `ahead` is what
    `lead` says of the best. Without any cosine (no embedding), keyword hits are at best good.
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
    known_shares = [bars[place].share(shares[place]) for place in places_with_cosine]
    values = confidences(scaled.cosines, known_shares)
    confidence = max(values)
    usable = sum(value >= scaled.bar.threshold - scaled.bar.scale for value in values)
    excellent = confidence >= scaled.bar.threshold + EXCELLENT
    poor = confidence < scaled.bar.threshold or (usable < needed and not excellent)
    quality = "poor" if poor else "excellent" if excellent else "good"
    return Verdict(
        quality,
        poor,
        usable,
        scaled.best,
        confidence,
        scaled.bar.threshold,
        certainty(confidence - scaled.bar.threshold, ahead),
    )


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
    above = [
        (bar.cosine(each) - bar.threshold) / bar.scale
        for each, bar in zip(cosines, bars, strict=True)
    ]
    best = int(np.argmax(above))
    bar = bars[best]
    return ScaledCosines([bar.threshold + each * bar.scale for each in above], bar, cosines[best])
