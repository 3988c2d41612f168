"""Levels of a search: what each finds, what filters leave, and why something is no result."""

import json

import numpy as np
import pytest
from django.db import connection
from pytest_django import Settings

from knowledge.identifiers import LOCAL_MODEL
from knowledge.search import Surroundings, neighbours, postings, vector, vector_indexes
from knowledge.search.scope import scope_of
from tests.knowledge.levels import ask, page, reasons, texts, towards

pytestmark = pytest.mark.django_db


def test_rare_words_count_more_than_frequent_ones() -> None:
    page("a", *((f"harbour number {n}", towards(1)) for n in range(9)), ("foghorn", towards(1)))
    assert texts(ask("foghorn of the harbour"))[0] == "foghorn"


def test_words_of_headings_and_crumbs_find_a_chunk_that_does_not_say_them() -> None:
    page("a", ("Every thirty seconds.", towards(1)), sections=[["Foghorn"]], crumbs=["Signals"])
    page("b", ("Every two hours.", towards(1)), sections=[["Ferry"]])
    assert texts(ask("foghorn signals"))[0] == "Every thirty seconds."


def test_what_a_list_is_cut_off_at_does_not_change_the_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chunks = [(f"whale {'krill ' * n}{'sea ' * (20 - n)}", towards(1)) for n in range(20)]
    page("a", *chunks, ("whale song", towards(1)))
    whole = texts(ask("whale krill song", limit=5))
    monkeypatch.setattr(postings, "READ", 6)
    assert texts(ask("whale krill song", limit=5)) == whole


def test_a_stop_word_of_one_language_is_none_of_another() -> None:
    page("en", *((f"Boats sail at {n}", towards(1)) for n in range(9)))
    page("de", ("the the the", towards(1)), config="german", language="de")
    assert texts(ask("Where do the boats sail?", limit=1)) != ["the the the"]


def test_a_document_in_chinese_is_found_by_part_of_a_sentence() -> None:
    page("zh", ("请在设置中重置密码。", towards(1)), config="simple", language="zh-cn")
    page("en", ("Reset it in the settings.", towards(1)))
    assert texts(ask("如何重置密码？"))[0] == "请在设置中重置密码。"


def test_meaning_finds_what_words_miss_and_the_section_and_document_count_too() -> None:
    page("far", ("far", towards(0.2, 0, 1)))
    page("near", ("near", towards(1, 0.2)))
    result = ask("", towards(1), explain=True)
    assert texts(result) == ["near", "far"]
    levels = {each.level for each in reasons(result)["near"].standings}
    assert levels == {"semantic", "hierarchical", "summary"}
    assert all(each.rank == 1 for each in reasons(result)["near"].standings)


def test_of_two_equal_chunks_the_one_of_the_nearer_document_comes_first() -> None:
    page("off", ("one", towards(1)), ("else", towards(0, 1)))
    page("on", ("two", towards(1)), ("also", towards(1, 0.3)))
    assert texts(ask("", towards(1), limit=1)) == ["two"]


def test_an_index_finds_what_an_exact_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    rows = [towards(*random.standard_normal(8)) for _ in range(60)]
    page("a", *((f"{n}", row) for n, row in enumerate(rows)))
    where = scope_of([])
    with connection.cursor() as cursor:
        # Other tests have rolled back hundreds of identical vectors, and there was no vacuum since:
        # where they are more than an element of the graph has neighbours, no way leads out of them.
        for kind in vector_indexes.INDEX_KINDS:
            cursor.execute(f"REINDEX TABLE knowledge_{kind}vector")
    for kind in vector_indexes.INDEX_KINDS:
        right = vector.nearest_alone(kind, rows[3][np.newaxis], LOCAL_MODEL, where, exact=True)
        assert vector.nearest_alone(kind, rows[3][np.newaxis], LOCAL_MODEL, where) == right
    small = texts(ask("", rows[3]))
    monkeypatch.setattr(vector, "is_small", lambda scope: False)
    assert texts(ask("", rows[3])) == small


@pytest.mark.parametrize("small", [True, False])
def test_filters_leave_only_what_was_asked_for(
    small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector, "is_small", lambda scope: small)
    page("de", ("whale de", towards(1)), language="de", audience="staff")
    page("at", ("whale at", towards(1, 0.1)), language="de-at")
    page("en", ("whale en", towards(1)), language="en", audience="guests")
    in_german = scope_of([], ["DE"])
    assert sorted(texts(ask("whale", towards(1), where=in_german))) == ["whale at", "whale de"]
    for_guests = scope_of([], (), "guests")
    assert sorted(texts(ask("whale", towards(1), where=for_guests))) == ["whale at", "whale en"]
    assert in_german.chunks == for_guests.chunks == 2


def test_explanation_names_what_the_filters_kept_out() -> None:
    page("de", ("whale de", towards(1)), language="de")
    page("en", ("whale en", towards(1)), language="en")
    entries = reasons(ask("whale", towards(1), where=scope_of([], ["de"]), explain=True))
    assert (entries["whale de"].place, entries["whale de"].dropped) == (1, None)
    assert (entries["whale en"].place, entries["whale en"].dropped) == (None, "filter")


def test_explanation_says_why_a_candidate_is_no_result(settings: Settings) -> None:
    settings.SEARCH_FETCH_K, settings.MMR_LAMBDA, settings.MAX_CONTEXT_LENGTH = 3, 0.1, 470
    chunks = [
        ("best " + "x" * 460, towards(1, 0.02)),
        ("same section", towards(1, 0.1)),
        ("copy", towards(1, 0.03)),
        ("different", towards(1, 0, 0.9)),
        ("last", towards(1, 0, 0, 3)),
    ]
    paths = [["A"], ["A"], ["B"], ["C"], ["D"]]
    page("a", *chunks, sections=paths)
    result = ask("", towards(1), limit=2, explain=True)
    entries = {text.split()[0]: each for text, each in reasons(result).items()}
    best, copy = entries["best"], entries["copy"]
    assert (best.place, best.dropped, best.why) == (1, None, "")
    assert (entries["same"].dropped, entries["same"].by) == ("section", best.chunk_id)
    assert (copy.dropped, copy.by) == ("variety", best.chunk_id)
    assert (entries["different"].place, entries["different"].dropped) == (2, "budget")
    assert entries["last"].dropped == "fetch"
    assert result.explain
    assert [each.score for each in result.explain.candidates] == sorted(
        (each.score for each in result.explain.candidates), reverse=True
    )
    assert json.loads(json.dumps(result.explain.as_json()))["candidates"][0]["why"] == ""


def test_results_come_in_the_order_of_their_scores() -> None:
    page("a", *((f"{n}", towards(1, n / 10, n % 3)) for n in range(12)))
    scores = [passage.score for passage in ask("", towards(1)).passages]
    assert scores == sorted(scores, reverse=True)


def test_neighbours_stand_around_a_chunk_in_its_document() -> None:
    document = page("a", *((f"{n}", towards(1)) for n in range(1, 6)))
    page("b", ("other", towards(1)))
    middle = document.chunks.get(number=3)
    first = document.chunks.get(number=1)
    assert neighbours([middle.pk, first.pk, 0]) == {
        middle.pk: Surroundings(before=["2"], after=["4"]),
        first.pk: Surroundings(before=[], after=["2"]),
    }
    wide = neighbours([middle.pk], distance=5)
    assert wide[middle.pk] == Surroundings(before=["1", "2"], after=["4", "5"])


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("manual.pdf", "manual.pdf#page=7"),
        ("https://x.org/a.PDF?v=1", "https://x.org/a.PDF?v=1#page=7"),
        ("slides.pptx", "slides.pptx"),
        ("a.pdf#chapter", "a.pdf#chapter"),
    ],
)
def test_source_of_a_pdf_leads_to_the_page(source: str, found: str) -> None:
    document = page(source, ("whale", towards(1)))
    document.chunks.update(page=7)
    (passage,) = ask("whale").passages
    assert (passage.source, passage.page) == (found, 7)
