"""Fusion: one ranking of several levels, and a varied selection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.search.fusion import (
    fill_missing,
    fuse,
    interleave,
    maximal_marginal_relevance,
    one_per_place,
    share_of_best,
    unit,
)
from knowledge.search.levels import relevance

NAN = float("nan")
scores = st.lists(st.one_of(st.floats(-1, 1), st.just(NAN)), min_size=1, max_size=8)


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_a_wide_gap_on_one_level_outweighs_a_narrow_one_on_another() -> None:
    levels = {"keyword": array(1.0, 0.1), "semantic": array(0.50, 0.55)}
    first, second = fuse(levels, {"keyword": 0.3, "semantic": 1.0})
    assert first > second


def test_a_level_that_knows_nothing_of_a_chunk_counts_it_as_its_worst() -> None:
    assert fill_missing(array(0.4, NAN, 0.2)).tolist() == [0.4, 0.2, 0.2]
    assert fill_missing(array(NAN, NAN)).tolist() == [0.0, 0.0]


@given(scores)
def test_one_level_alone_keeps_its_order(values: list[float]) -> None:
    one = fill_missing(np.array(values))
    assert np.array_equal(np.argsort(fuse({"semantic": one}, {"semantic": 1.0})), np.argsort(one))


def test_words_count_as_parts_of_the_best() -> None:
    assert share_of_best(array(4.0, 1.0, 0.0)).tolist() == [1.0, 0.25, 0.0]
    assert share_of_best(array(0.0, 0.0)).tolist() == [0.0, 0.0]


def test_the_best_of_two_models_are_equal_and_each_keeps_its_order() -> None:
    first = np.array([[0.6, NAN, 0.3, NAN]])
    second = np.array([[NAN, 0.91, NAN, 0.95]])
    assert interleave([first, second]).tolist() == [[0.6, 0.3, 0.3, 0.6]]
    assert first[0, 0] == 0.6
    assert np.isnan(first[0, 1])


def test_a_model_without_candidates_leaves_the_scale_to_the_other() -> None:
    assert interleave([np.array([[NAN]]), np.array([[0.7]])]).tolist() == [[0.7]]


def test_rows_come_to_length_one_and_zeros_stay() -> None:
    rows = unit(np.array([[3, 4], [0, 0]], dtype=np.float32))
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 0]]))


@given(st.lists(st.integers(0, 20)))
def test_only_the_first_of_each_place_is_kept_in_their_order(numbers: list[int]) -> None:
    places = [number % 3 for number in numbers]
    first_ones = one_per_place(list(enumerate(places)), lambda thing: thing[1])
    assert first_ones == [
        (at, place) for at, place in enumerate(places) if place not in places[:at]
    ]


ALIKE = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=np.float32)


def test_a_near_copy_gives_way_to_something_else() -> None:
    assert maximal_marginal_relevance([1.0, 0.9, 0.6], ALIKE, limit=2, trade_off=0.7) == [0, 2]


def test_relevance_alone_decides_when_the_trade_off_says_so() -> None:
    assert maximal_marginal_relevance([1.0, 0.9, 0.6], ALIKE, limit=3, trade_off=1) == [0, 1, 2]


@given(st.lists(st.floats(0, 1), max_size=8), st.integers(0, 10), st.floats(0, 1))
def test_selection_names_each_candidate_at_most_once(
    relevant: list[float], limit: int, trade_off: float
) -> None:
    alike = np.zeros((len(relevant), len(relevant)), dtype=np.float32)
    chosen = maximal_marginal_relevance(relevant, alike, limit=limit, trade_off=trade_off)
    assert len(chosen) == len(set(chosen)) == min(limit, len(relevant))


def test_relevance_spans_from_the_best_to_the_last() -> None:
    assert relevance([0.9, 0.8, 0.5]) == pytest.approx([1.0, 0.75, 0.0])
    assert relevance([0.5, 0.5]) == [1.0, 1.0]
    assert relevance([]) == []
