"""Reranker: the best chunks are held against the question token by token."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pytest_django import Settings

from knowledge.embedding import token_states
from knowledge.embedding.embedder import Kind
from knowledge.errors import EmbeddingUnavailable
from knowledge.models import Chunk
from knowledge.search import reranker, search, search_with_vectors
from knowledge.search.explanation import Wording
from knowledge.search.reranker import SPAN, alignment
from knowledge.search.results import Candidate, load
from knowledge.search.scope import scope_of
from tests.knowledge.levels import OTHER, ask, page, reasons, texts, towards

QUESTION = "How much does it cost to rent a towel?"
LOST = "A towel that was lost in the hall is kept at the desk, as is what else was found there."
RENT = "The price of hiring a towel is two euros."

Vectors = NDArray[np.float32]


def tokens(*places: int) -> Vectors:
    """Return a token for each number, unlike those of other numbers."""
    return np.eye(8, dtype=np.float32)[list(places)]


def reading(monkeypatch: pytest.MonkeyPatch, *speaking: str) -> list[str]:
    """Let only these texts speak of what is asked, and return what will have been read."""
    read: list[str] = []

    def states(shown: Sequence[str], *, kind: Kind) -> list[Vectors]:
        if kind == "question":
            return [tokens(0)]
        read.extend(shown)
        return [tokens(0 if each.rpartition("\n")[2] in speaking else 1) for each in shown]

    monkeypatch.setattr(reranker, "token_states", states)
    return read


def test_a_passage_that_has_every_token_is_aligned_wholly_in_whatever_order() -> None:
    assert alignment(tokens(0, 1, 2), tokens(2, 5, 0, 1)) == pytest.approx(1)
    assert alignment(3 * tokens(0, 1), 0.5 * tokens(1, 0)) == pytest.approx(1)


def test_one_token_without_a_counterpart_costs_more_than_its_share() -> None:
    assert alignment(tokens(0, 1, 2, 3), tokens(0, 1, 2)) < 0.5


def test_tokens_far_from_each_other_are_no_place_that_speaks_of_both() -> None:
    between = tokens(*[7] * SPAN)
    apart = np.concatenate([tokens(0), between, tokens(1)])
    together = np.concatenate([tokens(0, 1), between])
    assert alignment(tokens(0, 1), apart) < alignment(tokens(0, 1), together)


@given(st.integers(1, 9), st.integers(1, 200), st.integers(0, 99))
def test_alignment_lies_between_the_worst_and_the_best_cosine(
    asked: int, length: int, seed: int
) -> None:
    drawn = np.random.default_rng(seed).normal(size=(asked + length, 5)).astype(np.float32)
    value = alignment(drawn[:asked], drawn[asked:])
    assert value >= -1.001
    assert value <= 1.001 * alignment(drawn[:asked], drawn)
    assert alignment(drawn[:asked], drawn) == pytest.approx(1, abs=1e-3)


def test_what_answers_is_aligned_better_than_what_has_the_same_words() -> None:
    (asked,) = token_states([QUESTION])
    lost, rent = token_states([LOST, RENT], kind="passage")
    assert alignment(asked, rent) > alignment(asked, lost)


@pytest.mark.django_db
def test_what_answers_comes_before_what_is_as_near() -> None:
    page("lost", (LOST, towards(1)), title="Towels")
    page("rent", (RENT, towards(1, 0.1)), title="Towels")
    assert texts(ask(QUESTION, towards(1)))[0] == LOST
    assert texts(ask(QUESTION, towards(1), reads=True))[0] == RENT


@pytest.mark.django_db
def test_a_chunk_is_read_below_its_title_and_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    read = reading(monkeypatch)
    page("rent", (RENT, towards(1)), title="Towels", sections=[["Towels", "Rent one"]])
    ask("towel", towards(1), reads=True)
    assert read == [f"Towels Rent one\n{RENT}"]


@pytest.mark.django_db
def test_only_the_best_are_read_and_none_behind_them_gets_ahead(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.SEARCH_RERANK = 2
    for number, name in enumerate(["first", "second", "third", "fourth"]):
        page(name, (name, towards(1, 0.3 * number)))
    read = reading(monkeypatch, "second", "fourth")
    found = ask("", towards(1), reads=True, explain=True)
    assert read == []
    found = ask("x", towards(1), reads=True, explain=True)
    assert [each.rpartition("\n")[2] for each in read] == ["first", "second"]
    assert texts(found) == ["second", "first", "third", "fourth"]
    known = {name: each.alignment for name, each in reasons(found).items()}
    assert known == {
        "first": pytest.approx(0),
        "second": pytest.approx(1),
        "third": None,
        "fourth": None,
    }


@pytest.mark.django_db
@pytest.mark.parametrize("how", [{"SEARCH_RERANK": 0}, {"reads": False}])
def test_nothing_is_read_where_it_is_not_wanted(
    how: dict[str, int], monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.SEARCH_RERANK = how.get("SEARCH_RERANK", 6)
    page("rent", (RENT, towards(1)))
    read = reading(monkeypatch)
    assert search("towel", collections=["sea"], reads=bool(how.get("reads", True))).passages
    assert read == []


@pytest.mark.django_db
def test_what_another_model_found_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    page("rent", (RENT, towards(1)), model=OTHER)
    read = reading(monkeypatch)
    found = search_with_vectors(
        [Wording("towel", "question", 1.0)],
        {OTHER: towards(1)[np.newaxis]},
        scope_of([]),
        limit=8,
        reads=True,
        milliseconds={},
    )
    assert texts(found) == [RENT]
    assert read == []


@pytest.mark.django_db
def test_a_search_that_is_kept_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    page("rent", (RENT, towards(1)))
    read = reading(monkeypatch)
    for reads, is_kept in ((False, False), (True, False), (True, True), (False, False)):
        found = search("towel", collections=["sea"], reads=reads, reuse="me")
        assert found.stats["cached"] is is_kept
    assert len(read) == 1


@pytest.mark.django_db
def test_a_model_that_cannot_be_loaded_leaves_the_order_of_the_levels(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    page("lost", (LOST, towards(1)), title="Towels")
    page("rent", (RENT, towards(1, 0.1)), title="Towels")

    def fail(*args: object, **how: object) -> list[Vectors]:
        raise EmbeddingUnavailable("no weights")

    monkeypatch.setattr(reranker, "token_states", fail)
    assert texts(ask(QUESTION, towards(1), reads=True))[0] == LOST
    assert "no weights" in caplog.text


@pytest.mark.django_db
def test_a_chunk_deleted_meanwhile_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    page("lost", (LOST, towards(1)))
    page("rent", (RENT, towards(1, 0.1)))
    read = reading(monkeypatch)

    def without_one(chunks: Sequence[int]) -> dict[int, Candidate]:
        Chunk.objects.filter(text=LOST).delete()
        return load(chunks)

    monkeypatch.setattr("knowledge.search.reranker.load", without_one)
    assert texts(ask("towel", towards(1), reads=True)) == [RENT]
    assert read == [f"0\n{RENT}"]
