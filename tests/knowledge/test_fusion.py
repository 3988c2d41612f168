"""Fusion: one ranking of several, and a varied selection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.search.fusion import (
    maximal_marginal_relevance,
    one_per_place,
    reciprocal_rank_fusion,
)

rankings = st.lists(st.integers(1, 30), unique=True, max_size=12)


def test_a_chunk_on_both_lists_beats_the_first_of_either() -> None:
    fused = reciprocal_rank_fusion([(1.0, [1, 2, 3]), (1.0, [4, 2, 5])])
    assert next(iter(fused)) == 2
    assert fused[2] == pytest.approx(2 / 62)


def test_weight_decides_between_two_first_places() -> None:
    assert list(reciprocal_rank_fusion([(0.7, [1]), (1.0, [2])])) == [2, 1]


@given(rankings)
def test_one_ranking_alone_keeps_its_order(ranking: list[int]) -> None:
    assert list(reciprocal_rank_fusion([(1.0, ranking)])) == ranking


@given(st.lists(st.tuples(st.floats(0.1, 2), rankings), max_size=4))
def test_fused_scores_fall_and_hold_every_chunk_once(
    weighted: list[tuple[float, list[int]]],
) -> None:
    fused = reciprocal_rank_fusion(weighted)
    assert list(fused.values()) == sorted(fused.values(), reverse=True)
    assert set(fused) == {chunk for _, ranking in weighted for chunk in ranking}


@given(st.lists(st.integers(0, 20)))
def test_only_the_first_of_each_place_is_kept(things: list[int]) -> None:
    kept = one_per_place(things, lambda thing: thing % 3)
    assert len(kept) == len({thing % 3 for thing in things})
    assert all(things.index(thing) <= things.index(each) for thing in kept[:1] for each in kept)


def test_a_near_copy_gives_way_to_something_else() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert maximal_marginal_relevance([1.0, 0.9, 0.6], vectors, limit=2, trade_off=0.7) == [0, 2]


def test_relevance_alone_decides_when_the_trade_off_says_so() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert maximal_marginal_relevance([1.0, 0.9, 0.6], vectors, limit=3, trade_off=1) == [0, 1, 2]


@given(st.lists(st.floats(0, 1), max_size=8), st.integers(0, 10), st.floats(0, 1))
def test_selection_names_each_candidate_at_most_once(
    relevance: list[float], limit: int, trade_off: float
) -> None:
    vectors = np.zeros((len(relevance), 3), dtype=np.float32)
    chosen = maximal_marginal_relevance(relevance, vectors, limit=limit, trade_off=trade_off)
    assert len(chosen) == len(set(chosen)) == min(limit, len(relevance))
