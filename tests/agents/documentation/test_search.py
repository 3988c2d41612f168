"""Search, the agent: hands on what knowledge found, cut to what may be read at once."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from agents.documentation.search import find
from knowledge import ingestion
from knowledge.embedding.local import MULTILINGUAL
from knowledge.errors import EmbeddingUnavailable, UnknownCollection
from knowledge.ingestion.backfill import fill
from knowledge.models import Collection
from knowledge.search import vector
from tests.knowledge.polyglot import Polyglot

pytestmark = pytest.mark.django_db

PAGES = {
    "care.md": "---\ntitle: Care\n---\n\nThe machine is descaled quarterly with citric acid.",
    "warranty.md": "---\ntitle: Warranty\n---\n\nThe warranty covers defects for two years.",
    "grinder.md": "---\ntitle: Grinder\n---\n\nA finer setting of the grinder makes coffee strong.",
}


@pytest.fixture(autouse=True)
def handbook(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ingestion.ingest(ingestion.find([tmp_path]), collection="handbook")


def search_writes(question: str, **payload: Any) -> dict[str, Any]:
    return find({"canonical_question": question, "collections": ["handbook"]} | payload)


def test_the_best_passage_comes_first_and_into_the_context() -> None:
    writes = search_writes("How often do I descale the machine?")
    assert writes["search_results"][0]["title"] == "Care"
    assert "citric acid" in writes["search_context"]
    assert writes["search_error"] == ""


def test_the_figures_of_a_search_tell_what_of_it_is_used(settings: Settings) -> None:
    settings.MAX_CONTEXT_LENGTH = 500
    writes = search_writes("How often do I descale the machine?")
    stats, used = writes["search_stats"], writes["search_results"]
    assert (stats["total"], stats["used"]) == (3, 3)
    assert stats["context_length"] == len(writes["search_context"])
    mean = sum(each["cosine"] for each in used) / 3
    assert stats["average_score"] == pytest.approx(mean, abs=1e-4)
    settings.MAX_CONTEXT_LENGTH = 80
    stats = search_writes("How often do I descale the machine?")["search_stats"]
    assert (stats["total"], stats["used"]) == (3, 1)
    assert stats["average_score"] == pytest.approx(used[0]["cosine"], abs=1e-4)


def test_only_documents_that_the_filters_let_through_are_searched() -> None:
    question = "How often do I descale the machine?"
    assert not search_writes(question, languages=["de"])["search_results"]
    assert search_writes(question, languages=["en"], audience="cooks")["search_results"]


def test_without_the_embedding_model_the_reason_is_told_without_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise EmbeddingUnavailable("small at http://10.0.0.5:8000/v1 cannot be reached")

    monkeypatch.setattr(vector, "encode_wordings", refuse)
    writes = search_writes("How often do I descale the machine?")
    assert writes["search_results"]
    assert "10.0.0.5" not in str(writes)
    assert writes["search_error"].startswith("Only words were compared")
    assert writes["search_stats"]["average_score"] is None


def test_only_the_collections_of_the_conversation_are_searched() -> None:
    with pytest.raises(UnknownCollection):
        search_writes("How often do I descale the machine?", collections=["other"])


def test_a_refined_query_finds_what_the_question_did_not_name() -> None:

    passages = search_writes("zzz", refined_query="warranty defects years")["search_results"]
    assert passages[0]["title"] == "Warranty"


def test_as_many_passages_as_were_asked_for() -> None:
    assert len(search_writes("coffee machine", retrieval_k=2)["search_results"]) == 2


def test_the_context_keeps_to_its_length(settings: Settings) -> None:
    settings.MAX_CONTEXT_LENGTH = 120
    writes = search_writes("coffee machine")
    assert len(writes["search_results"]) == 3
    assert len(writes["search_context"]) < 200


def test_a_search_is_found_again_by_whoever_made_it_only() -> None:
    ada, bob = ({"owner": "user:1", "user_id": name} for name in ("ada", "bob"))
    cached = [
        search_writes("coffee machine", **who)["search_stats"]["cached"] for who in (ada, bob, ada)
    ]
    assert cached == [False, False, True]


def test_a_question_about_something_else_is_poor() -> None:
    assert search_writes("What is the best pizza in Naples?")["search_quality"] == "poor"


@pytest.mark.parametrize(
    ("language", "confidence", "is_foreign"),
    [
        ("de", 0.0, True),  # nobody could translate it
        ("de", 0.9, False),  # a model has translated it
        ("de", 1.0, False),  # in English, to be answered in German
        ("en", 1.0, False),
        ("", None, False),
    ],
)
def test_what_nobody_translated_is_searched_for_across_languages(
    language: str,
    confidence: float | None,
    is_foreign: bool,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.CROSS_LINGUAL = True
    monkeypatch.setattr(MULTILINGUAL, "encode", Polyglot())
    fill(Collection.objects.get(name="handbook"), MULTILINGUAL)
    payload = {"language": language, "translation_confidence": confidence}
    stats = search_writes("Wie oft wird entkalkt?", **payload)["search_stats"]
    assert stats["is_foreign"] is is_foreign


@pytest.mark.parametrize(
    ("question", "payload", "unproven"),
    [
        ("What is the machine descaled with quarterly?", {}, []),
        ("What is the machine descaled with quarterly?", {"response_notes": ["2 lines"]}, []),
        (
            "What is the machine descaled with quarterly?",
            {"response_notes": ["brief", "example", "beside the grinder"]},
            ["example", "beside the grinder"],
        ),
        ("What is the machine descaled with quarterly?", {"retrieval_k": 12}, ["several places"]),
        ("How much citric acid is the machine descaled with quarterly?", {}, ["a number"]),
        (
            "What is the machine descaled and rinsed with quarterly?",
            {},
            ["several places", "rinsed"],
        ),
        ("Is the T2 machine descaled quarterly with citric acid?", {}, ["t2"]),
    ],
)
def test_what_is_wished_for_and_no_nearness_vouches_for_is_named(
    question: str, payload: dict[str, Any], unproven: list[str]
) -> None:
    writes = search_writes(question, **payload)
    assert writes["search_quality"] == "excellent"
    assert writes["search_stats"]["unproven"] == unproven
