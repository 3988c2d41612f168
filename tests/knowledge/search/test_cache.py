"""Searches that are found again: equal ones only, and nothing that changed or was deleted."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from knowledge import ingestion
from knowledge.identifiers import LOCAL_MODEL
from knowledge.ingestion import removal
from knowledge.models import Calibration, Collection, Document
from knowledge.search import SearchResult, cache, search

pytestmark = pytest.mark.django_db
QUESTION = "When does the foghorn sound?"


@pytest.fixture
def ingested(island: Path) -> Path:
    """The island as a collection, and the folder it is of."""
    ingestion.ingest(ingestion.find([island]), collection="island")
    return island


def ask(**changes: Any) -> SearchResult:
    asked: dict[str, Any] = {
        "question": QUESTION,
        "collections": ["island"],
        "reuse": "user:1/ada",
    } | changes
    return search(**asked)


def same(one: SearchResult, other: SearchResult) -> bool:
    return (one.passages, one.quality, one.no_context) == (
        other.passages,
        other.quality,
        other.no_context,
    )


def test_an_equal_search_finds_the_same_without_searching(ingested: Path) -> None:
    first, again = ask(), ask()
    assert (first.stats["cached"], again.stats["cached"]) == (False, True)
    assert same(first, again)
    assert again.stats["confidence"] == first.stats["confidence"]
    assert set(again.stats["ms"]) == {"scope", "typos", "selection"}


@pytest.mark.parametrize(
    "changes",
    [
        {"question": "When does the bell sound?"},
        {"alternative": "horn"},
        {"limit": 2},
        {"languages": ["en"]},
        {"audience": "guests"},
        {"collections": []},
        {"reuse": ""},
        {"reuse": "user:1/bob"},
        {"explain": True},
    ],
)
def test_another_search_searches(ingested: Path, changes: dict[str, Any]) -> None:
    Collection.objects.create(name="mainland")
    ask()
    assert ask(**changes).stats["cached"] is False


@pytest.mark.parametrize(
    ("name", "value"),
    [("SEARCH_MIN_HITS", 3), ("MMR_LAMBDA", 0.2), ("SEARCH_FETCH_K", 9), ("SEARCH_RERANK", 2)],
)
def test_other_settings_search_anew(
    ingested: Path, settings: Settings, name: str, value: float
) -> None:
    ask()
    setattr(settings, name, value)
    assert ask().stats["cached"] is False


def test_a_deleted_document_is_not_found_again(ingested: Path) -> None:
    (fog,) = Document.objects.filter(source="island/fog.txt")
    assert fog.pk in {each.document_id for each in ask().passages}
    removal.delete([fog])
    result = ask()
    assert result.stats["cached"] is False
    assert fog.pk not in {each.document_id for each in result.passages}


def test_what_is_gone_without_notice_is_not_shown(ingested: Path) -> None:
    ask()
    Document.objects.filter(source="island/fog.txt").delete()
    assert not any(each.title == "Fog" for each in ask().passages)


def test_a_changed_document_is_searched_anew(ingested: Path) -> None:
    ask()
    (ingested / "fog.txt").write_text("The foghorn has been replaced by a bell. Sailors like it.")
    ingestion.ingest(ingestion.find([ingested]), collection="island")
    result = ask()
    assert result.stats["cached"] is False
    assert any("replaced by a bell" in each.text for each in result.passages)


def test_a_new_document_is_found_at_once(ingested: Path) -> None:
    ask()
    (ingested / "horn.txt").write_text(
        "The new foghorn sounds whenever the lighthouse keeper sleeps."
    )
    ingestion.ingest(ingestion.find([ingested]), collection="island")
    assert any("keeper sleeps" in each.text for each in ask().passages)


def test_an_ingest_that_changes_nothing_leaves_what_was_found(ingested: Path) -> None:
    ask()
    ingestion.ingest(ingestion.find([ingested]), collection="island", keep_missing=True)
    assert ask().stats["cached"] is True


def test_another_threshold_is_judged_anew(ingested: Path) -> None:
    ask()
    Calibration.objects.create(
        collection=Collection.objects.get(), model=LOCAL_MODEL, threshold=0.99
    )
    result = ask()
    assert (result.stats["cached"], result.stats["threshold"]) == (False, 0.99)


def test_nothing_is_kept_when_the_setting_is_0(ingested: Path, settings: Settings) -> None:
    settings.CACHE_SEARCH_SECONDS = 0
    ask()
    assert ask().stats["cached"] is False


def test_without_redis_searches_go_on(ingested: Path, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1"
    assert ask().passages
    assert ask().stats["cached"] is False


def test_what_is_kept_says_nothing_a_document_says(ingested: Path, settings: Settings) -> None:
    ask()
    redis = cache.client(settings.REDIS_URL)
    entries = [str(redis.get(key)) for key in redis.scan_iter(f"{cache.PREFIX}*")]
    assert entries
    assert not any("foghorn" in each.lower() for each in entries)
    assert 0 < redis.ttl(next(redis.scan_iter(f"{cache.PREFIX}*"))) <= 300
