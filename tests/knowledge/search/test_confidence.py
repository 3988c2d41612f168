"""Quality: when a search has found nothing that could carry an answer."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.search.confidence import (
    USUAL_LEAD,
    Bar,
    Verdict,
    certainty,
    confidences,
    judge,
    lead,
)

BAR = Bar(0.35, 0.15)
FAR = [0.1] * 21


def verdict(cosines: Sequence[float | None], share: float = 0.0, chunks: int = 100) -> Verdict:
    shares = [share] + [0.0] * (len(cosines) - 1)
    return judge(cosines, shares, [BAR] * len(cosines), min_hits=3, chunks=chunks)


def confidence(cosines: Sequence[float], share: float = 0.0) -> float:
    return max(confidences(cosines, [share] + [0.0] * (len(cosines) - 1)))


@pytest.mark.parametrize(
    ("cosines", "share", "quality"),
    [
        ([0.7, 0.6, 0.5, *FAR], 0.4, "excellent"),
        ([0.5, 0.4, 0.36, *FAR], 0.0, "good"),
        ([0.28, 0.2, 0.18, *FAR], 0.0, "poor"),
        # What is near but lacks the question's words, and what holds them and is not near.
        ([0.4, 0.38, 0.36, *FAR], 0.3, "good"),
        ([0.1, 0.1, 0.1, *FAR], 0.4, "poor"),
        # One passage that answers is enough if it does so clearly.
        ([0.7, 0.1, 0.1, *FAR], 0.3, "excellent"),
        ([0.45, 0.1, 0.1, *FAR], 0.0, "poor"),
        ([], 0.0, "poor"),
    ],
)
def test_quality_follows_from_the_nearest_passages(
    cosines: list[float], share: float, quality: str
) -> None:
    result = verdict(cosines, share) if cosines else judge([], [], [], min_hits=3, chunks=100)
    assert (result.quality, result.no_context) == (quality, quality == "poor")


def test_passage_counts_more_when_it_stands_out_and_holds_the_words() -> None:
    assert confidence([0.6, 0.2, 0.1]) == pytest.approx(0.6 - 0.3 / 2)
    assert confidence([0.6, 0.2, 0.1], 0.5) == pytest.approx(0.6 - 0.3 / 2 + 0.5 / 2)


def test_passages_far_down_change_nothing() -> None:
    assert confidence([0.6] * 24 + [0.0] * 500) == confidence([0.6] * 24)


def test_page_of_few_chunks_needs_no_three_hits() -> None:
    assert verdict([0.6, 0.1, 0.1, 0.1], chunks=4).quality == "good"
    assert verdict([0.6], share=0.5, chunks=1).quality == "good"
    assert verdict([0.3], chunks=1).no_context


def test_each_passage_is_measured_against_its_own_collection() -> None:
    strict, lenient = Bar(0.9, 0.05), Bar(0.2, 0.1)
    cosines, bars = [0.7, 0.7, 0.45, 0.4, 0.4], [strict] * 2 + [lenient] * 3
    result = judge(cosines, [0.0] * 5, bars, min_hits=1, chunks=100)
    assert (result.best_cosine, result.threshold, result.no_context) == (0.45, 0.2, False)
    assert judge(cosines[:2], [0.0] * 2, bars[:2], min_hits=1, chunks=100).no_context


def test_confidence_of_one_collection_does_not_depend_on_its_threshold() -> None:
    cosines, shares = [0.5, 0.3, 0.2], [0.1, 0.6, 0.0]
    for bar in (BAR, Bar(0.9, 0.3)):
        result = judge(cosines, shares, [bar] * 3, min_hits=1, chunks=100)
        assert result.confidence == pytest.approx(max(confidences(cosines, shares)))
        assert result.threshold == bar.threshold


def test_words_alone_are_at_best_good() -> None:
    assert verdict([None, None, None]).quality == "good"
    assert verdict([None]).quality == "poor"


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_better_best_passage_never_makes_it_worse(
    cosines: list[float], nearer: float, share: float
) -> None:
    ranks = ["poor", "good", "excellent"]
    best, *others = sorted(cosines, reverse=True)
    before = verdict([best, *others])
    after = verdict([min(1.0, best + nearer), *others], share)
    assert ranks.index(after.quality) >= ranks.index(before.quality)


def test_one_usable_passage_above_the_threshold_is_enough_where_one_is_asked_for() -> None:
    result = judge([0.45, *FAR], [0.0] * 22, [BAR] * 22, min_hits=1, chunks=100)
    assert result.quality == "good"


def test_lead_compares_documents_and_not_passages() -> None:
    scores, documents = [1.0, 0.9, 0.8, 0.7, 0.5, 0.2], ["a", "a", "b", "c", "d", "e"]
    assert lead(scores, documents) == pytest.approx(0.2)


def test_lead_of_a_single_document_is_the_usual() -> None:
    assert lead([1.0, 0.6], ["a", "a"]) == lead([], []) == USUAL_LEAD
    assert lead([0.0, -0.1], ["a", "b"]) == USUAL_LEAD


@given(st.floats(-0.5, 0.8), st.floats(0, 1), st.floats(0.01, 0.2))
def test_certainty_is_a_share_that_grows_with_confidence_and_lead(
    above: float, ahead: float, more: float
) -> None:
    usual = certainty(above, ahead)
    assert 0 < usual < 1
    assert certainty(above + more, ahead) > usual
    assert certainty(above, ahead + more) > usual


def test_search_without_cosines_is_certain_of_nothing() -> None:
    assert judge([None], [0.5], [BAR], min_hits=1, chunks=100).certainty is None
