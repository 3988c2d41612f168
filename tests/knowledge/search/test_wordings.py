"""Other wordings of a question, and several models: what is searched for, and found."""

from collections.abc import Iterator

import numpy as np
import pytest
from django.db import transaction
from pytest_django import Settings

from knowledge.identifiers import LOCAL_MODEL
from knowledge.search import (
    SearchResult,
    expansion,
    search,
    search_with_vectors,
    vector,
    vector_indexes,
)
from knowledge.search.explanation import Wording
from knowledge.search.scope import scope_of
from tests.knowledge.levels import OTHER, Vectors, page, texts, towards

pytestmark = pytest.mark.django_db


@pytest.fixture
def written() -> Iterator[list[str]]:
    """Note for which questions other texts are written, and in which languages."""
    asked: list[str] = []

    def alternatives(question: str, languages: list[str]) -> list[tuple[str, str, float]]:
        asked.append(f"{question}: {', '.join(languages)}")
        return [("expand", "foghorn", 0.5), ("hyde", "It sounds at night.", 0.5)]

    before = expansion._sources[:]
    expansion._sources[:] = [alternatives]  # type: ignore[list-item]
    yield asked
    expansion._sources[:] = before


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        ("off", ["question"]),
        ("expand", ["question", "expand"]),
        ("hyde", ["question", "hyde"]),
        ("both", ["question", "expand", "hyde"]),
    ],
)
def test_only_wanted_texts_are_searched_for_beside_the_question(
    wanted: str, kinds: list[str], settings: Settings, written: list[str]
) -> None:
    settings.SEARCH_EXPANSION = wanted
    page("a", ("foghorn", towards(1)))
    result = search("whale", collections=["sea"], explain=True)
    assert result.explain
    assert [each.kind for each in result.explain.wordings] == kinds
    assert bool(written) == (wanted != "off")


def test_other_texts_are_written_in_the_languages_of_the_documents(
    settings: Settings, written: list[str]
) -> None:
    settings.SEARCH_EXPANSION = "both"
    for name, language in (("a", "de-ch"), ("b", "de"), ("c", "fr")):
        page(name, (name, towards(1)), language=language)
    search("whale", collections=["sea"])
    search("whale", collections=["sea"], languages=["fr"])
    assert written == ["whale: de, fr", "whale: fr"]


def test_statistics_say_that_nobody_writes_other_texts(settings: Settings) -> None:
    settings.SEARCH_EXPANSION = "both"
    page("a", ("foghorn", towards(1)))
    assert search("whale", collections=["sea"]).stats["expansion"] == expansion.NO_MODEL


def both(vector: Vectors, other: Vectors) -> SearchResult:
    """Ask two models at once."""
    with transaction.atomic():
        return search_with_vectors(
            [Wording("", "question", 1.0)],
            {LOCAL_MODEL: vector[np.newaxis], OTHER: other[np.newaxis]},
            scope_of([]),
            limit=4,
            milliseconds={},
        )


def test_collections_of_different_models_are_searched_together() -> None:
    page("a", ("first", towards(1, 0.5)), ("third", towards(1, 2)))
    page(
        "b",
        ("second", towards(1, 0.1, dimensions=512)),
        ("fourth", towards(1, 0.2, dimensions=512)),
        collection="wide",
        model=OTHER,
    )
    result = both(towards(1), towards(1, dimensions=512))
    assert {*texts(result)[:2]} == {"first", "second"}
    assert {*texts(result)[2:]} == {"third", "fourth"}
    cosines = {each.text: each.cosine for each in result.passages}
    assert cosines["first"] == pytest.approx(1 / 1.25**0.5, abs=1e-3)
    assert cosines["second"] == pytest.approx(1 / 1.01**0.5, abs=1e-3)


def test_a_model_to_which_all_is_alike_has_its_differences_scaled() -> None:
    random = np.random.default_rng(2)
    rows = [towards(10, *random.standard_normal(30)) for _ in range(vector.FEWEST)]
    page("a", *((f"{n}", row) for n, row in enumerate(rows)), model=OTHER)
    vector.forget()
    assert vector.scale(OTHER) > 2
    assert vector.scale(LOCAL_MODEL) == vector.scale("nobody@own") == 1.0
    vector.forget()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("dimensions", [4000, 4001, 4096])
def test_long_vectors_are_indexed_and_found(
    dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector, "is_small", lambda scope: False)
    random = np.random.default_rng(3)
    rows = random.standard_normal((40, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    page("a", *((f"{n}", row) for n, row in enumerate(rows)), model=OTHER)
    vector_indexes.ensure(OTHER, dimensions)
    vector_indexes.ensure(OTHER, dimensions)
    assert all(
        vector_indexes.is_valid(vector_indexes.name(kind, OTHER))
        for kind in vector_indexes.INDEX_KINDS
    )
    result = search_with_vectors(
        [Wording("", "question", 1.0)],
        {OTHER: rows[5][np.newaxis]},
        scope_of([]),
        limit=1,
        milliseconds={},
    )
    assert texts(result) == ["5"]
    vector_indexes.drop(OTHER)
    assert not vector_indexes.is_valid(vector_indexes.name("chunk", OTHER))
