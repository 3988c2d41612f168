"""Quality: when a search has found nothing that could carry an answer."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.search.quality import Verdict, judge


def verdict(cosines: Sequence[float | None], chunks: int = 100) -> Verdict:
    return judge(cosines, threshold=0.35, min_hits=3, chunks=chunks)


@pytest.mark.parametrize(
    ("cosines", "quality"),
    [
        ([0.7, 0.6, 0.5, 0.1], "excellent"),
        ([0.4, 0.38, 0.36, 0.1], "good"),
        ([0.28, 0.2, 0.18], "poor"),
        ([0.9, 0.8], "poor"),
        ([0.9, 0.9, 0.1], "poor"),
        ([], "poor"),
    ],
)
def test_quality_follows_from_the_best_hits(cosines: list[float], quality: str) -> None:
    found = verdict(cosines)
    assert (found.quality, found.no_context) == (quality, quality == "poor")


def test_weak_hits_further_down_do_not_spoil_good_ones() -> None:
    assert verdict([0.7, 0.6, 0.5] + [0.0] * 20).quality == "excellent"


def test_two_chunks_in_all_need_not_be_three_hits() -> None:
    assert not verdict([0.6, 0.5], chunks=2).no_context


def test_words_alone_are_at_best_good() -> None:
    assert verdict([None, None, None]).quality == "good"
    assert verdict([None]).quality == "poor"


@given(st.lists(st.floats(-1, 1), max_size=10), st.floats(0, 1))
def test_a_better_hit_never_makes_it_worse(cosines: list[float], better: float) -> None:
    ranks = ["poor", "good", "excellent"]
    before, after = verdict(cosines), verdict([*cosines, max([better, *cosines])])
    assert ranks.index(after.quality) >= ranks.index(before.quality)
