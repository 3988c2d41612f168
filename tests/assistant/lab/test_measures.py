"""Measures: figures worked out by hand."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.lab import measures
from knowledge.calibration import best_threshold

GRADES = {"a": 2, "b": 1, "c": 0, "d": 1}
RANKING = ["c", "a", "x", "b", "y"]


def test_gain_is_the_grade_discounted_by_the_logarithm_of_its_rank() -> None:
    gained = 2 / log2(3) + 1 / log2(5)
    ideal = 2 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert measures.ndcg(RANKING, GRADES, 10) == pytest.approx(gained / ideal)


def test_what_comes_after_the_cut_gains_nothing_and_shortens_the_ideal() -> None:
    ideal = 2 / log2(2) + 1 / log2(3)
    assert measures.ndcg(RANKING, GRADES, 2) == pytest.approx(2 / log2(3) / ideal)


def test_ideal_ranking_gains_one() -> None:
    assert measures.ndcg(["a", "d", "b"], GRADES, 10) == 1.0


def test_documents_judged_worthless_are_not_relevant() -> None:
    assert measures.recall(RANKING, GRADES, 5) == pytest.approx(2 / 3)
    assert measures.recall(RANKING, GRADES, 2) == pytest.approx(1 / 3)
    assert measures.reciprocal_rank(RANKING, GRADES, 10) == 0.5


def test_nothing_found_and_nothing_relevant_are_worth_nothing() -> None:
    for metric in (measures.ndcg, measures.recall, measures.reciprocal_rank):
        assert metric([], GRADES, 10) == 0.0
        assert metric(["a"], {"a": 0}, 10) == 0.0


def test_ties_count_half() -> None:
    # Of six pairs (0.9, 0.5 against 0.1, 0.5, 0.7): 3 + 1 won, one tie, one lost.
    assert measures.area_under_curve([0.9, 0.5], [0.1, 0.5, 0.7]) == pytest.approx(4.5 / 6)
    assert measures.area_under_curve([0.3], [0.3]) == 0.5
    assert measures.area_under_curve([], [0.3]) is None


scores = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(scores, scores)
def test_area_is_the_share_of_pairs_in_order(
    positives: list[float], negatives: list[float]
) -> None:
    pairs = [(p > n) + (p == n) / 2 for p in positives for n in negatives]
    area = measures.area_under_curve(positives, negatives)
    assert area == pytest.approx(sum(pairs) / len(pairs))


def test_detection_counts_what_was_flagged() -> None:
    detection = measures.detection([True, True, False, False], [True, False, True, True])
    assert detection.precision == 0.5
    assert detection.recall == pytest.approx(1 / 3)
    assert detection.f1 == pytest.approx(2 / 5)


def test_detection_that_says_nothing_has_no_precision() -> None:
    assert measures.detection([False], [True]) == measures.Detection(None, 0.0, 0.0)
    assert measures.detection([False], [False]) == measures.Detection(None, None, None)


def test_best_threshold_lies_between_what_it_parts() -> None:
    threshold, gain = best_threshold([0.6, 0.8], [0.2, 0.4])
    assert threshold == pytest.approx(0.5)
    assert gain == 1.0


def test_best_threshold_gives_up_the_least_when_both_mix() -> None:
    # All kept, 3 of 4 refused.
    threshold, gain = best_threshold([0.2, 0.5, 0.6, 0.7], [0.05, 0.1, 0.15, 0.55])
    assert gain == pytest.approx(0.75)
    assert threshold == pytest.approx(0.175)


@given(scores, scores)
def test_no_threshold_parts_better(positives: list[float], negatives: list[float]) -> None:
    threshold, gain = best_threshold(positives, negatives)

    def youden(at: float) -> float:
        hits = sum(score >= at for score in positives) / len(positives)
        return hits + sum(score < at for score in negatives) / len(negatives) - 1

    assert gain == pytest.approx(max(youden(score) for score in [*positives, *negatives]))
    assert youden(threshold) == pytest.approx(gain)
