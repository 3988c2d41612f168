"""Measures: what a ranking, a score and a yes or no are worth. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

Grades = Mapping[str, int]  # document → how relevant it is; those not named are not


def ndcg(ranking: Sequence[str], grades: Grades, at: int) -> float:
    """Return the normalised discounted cumulative gain of the first `at`, 0 to 1.

    Järvelin and Kekäläinen 2002 with the grade itself as gain and log2(rank + 1) as discount, as
    trec_eval and BEIR compute it. The ideal ranking has every judged document in it.
    """
    ideal = discounted(sorted((max(0, grade) for grade in grades.values()), reverse=True)[:at])
    gains = [max(0, grades.get(document, 0)) for document in ranking[:at]]
    return discounted(gains) / ideal if ideal else 0.0


def discounted(gains: Iterable[int]) -> float:
    """Return the discounted cumulative gain of the gains in their order."""
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def recall(ranking: Sequence[str], grades: Grades, at: int) -> float:
    """Return the share of the relevant documents that are among the first `at`."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:at])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Grades, at: int) -> float:
    """Return 1 / rank of the first relevant document, 0 when none is among the first `at`."""
    ranks = (rank for rank, document in enumerate(ranking[:at], 1) if grades.get(document, 0) > 0)
    return 1 / next(ranks, float("inf"))


def area_under_curve(positives: Sequence[float], negatives: Sequence[float]) -> float | None:
    """Return how often a positive scores above a negative, a tie counted half; None without pairs.

    The area under the ROC curve as the rank sum of Mann and Whitney (Hanley and McNeil 1982).
    """
    if not positives or not negatives:
        return None
    others = np.sort(negatives)
    below = np.searchsorted(others, positives, side="left")
    not_above = np.searchsorted(others, positives, side="right")
    return float((below + not_above).mean() / 2 / len(others))


@dataclass(frozen=True)
class Detection:
    """How well a yes or no picks out the cases it is meant for."""

    precision: float | None  # None when it never says yes
    recall: float | None  # None when there are no such cases
    f1: float | None


def detection(verdicts: Sequence[bool], truth: Sequence[bool]) -> Detection:
    """Compare the verdict on each case with what is true of it."""
    hits = sum(verdict and true for verdict, true in zip(verdicts, truth, strict=True))
    precision = hits / sum(verdicts) if any(verdicts) else None
    recall = hits / sum(truth) if any(truth) else None
    both = sum(verdicts) + sum(truth)
    return Detection(precision, recall, 2 * hits / both if both else None)


def digits(value: float | None) -> str:
    """Return a figure for a table: three digits, a dash for none."""
    return "-" if value is None else f"{value:.3f}"
