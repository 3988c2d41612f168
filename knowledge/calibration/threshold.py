"""Threshold: where confidence begins to carry an answer. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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


def chosen(scores: Scores) -> Choice:
    """Return the threshold for these scores; `foreign` must not be empty.

    With golden questions: where they are best parted from those without an answer (Youden's J).
    Without: where one in twenty foreign questions passes (the rule of Neyman and Pearson: they
    are real questions, the own ones are not), higher as long as nineteen of twenty own ones pass
    and foreign ones still do, for questions about the same subject without an answer lie between.
    In both cases nine of ten that can be answered pass, and half of the foreign ones do not.
    """
    usual = float(np.median(scores.foreign))
    threshold, reason = parted(scores) if scores.is_golden else balanced(scores)
    if len(scores.good) and threshold > (most := float(np.quantile(scores.good, MOST_MISSES))):
        threshold = most
        reason = f"{MOST_MISSES:.0%} of the questions that can be answered are refused"
    if threshold < usual + NARROWEST:
        threshold = usual + NARROWEST
        reason = "half of the questions about something else pass; they cannot be told better"
    return Choice(threshold, threshold - usual, reason)


def parted(scores: Scores) -> tuple[float, str]:
    """Return the threshold by golden questions, and why."""
    threshold, _ = best_threshold(scores.answerable, scores.bad)
    return threshold, "parts the golden questions best"


def balanced(scores: Scores) -> tuple[float, str]:
    """Return the threshold by foreign and own questions, and why."""
    few, none = upper(scores.foreign, FALSE_ALARMS), upper(scores.foreign, NONE)
    cheap = float(np.quantile(scores.own, MISSES)) if len(scores.own) else few
    if cheap <= few:
        return few, f"about {FALSE_ALARMS:.0%} of the questions about something else pass"
    if cheap <= none:
        return cheap, f"{MISSES:.0%} of its own titles are refused"
    return none, "next to no question about something else passes"


def upper(scores: Sequence[float], share: float) -> float:
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
    kept = 1 - np.searchsorted(np.sort(positives), scores, side="left") / max(1, len(positives))
    refused = np.searchsorted(np.sort(negatives), scores, side="left") / max(1, len(negatives))
    gain = kept + refused - 1
    best = int(gain.argmax())
    below = scores[max(0, best - 1)]
    middle = (below + scores[best]) / 2
    # Between two floats that are neighbours lies nothing.
    return float(middle if middle > below else scores[best]), float(gain[best])
