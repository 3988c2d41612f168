"""Vanished pages: what a sitemap names no more is removed, and nothing else is."""

from collections.abc import Callable
from typing import NoReturn

import pytest

from knowledge import ingestion
from knowledge.errors import Unreadable
from knowledge.ingestion import Report, completion, loader
from knowledge.ingestion.job_lease import Cancelled
from knowledge.models import Copy, Document, Ingest, Receipt
from knowledge.web import Fetched
from tests.knowledge.jobs import ran

pytestmark = pytest.mark.django_db

SITE = "https://example.com"
MAP, OTHER_MAP = f"{SITE}/sitemap.xml", f"{SITE}/other.xml"
Maps = dict[str, list[str]]


@pytest.fixture
def maps(monkeypatch: pytest.MonkeyPatch) -> Maps:
    """What each sitemap names; every page says something of its own, "twin" what "fog" says."""
    named: Maps = {}
    monkeypatch.setattr(
        loader,
        "pages_of",
        lambda url: dict.fromkeys([f"{SITE}/{each}" for each in named.get(url, [])] or [url], ""),
    )
    monkeypatch.setattr(loader, "fetch", lambda url, **_: Fetched(url, "page.html", page(url)))
    return named


def page(url: str) -> bytes:
    name = url.rpartition("/")[2].replace("twin", "fog")
    return f"<h1>{name}</h1><p>The island is known for its {name}.</p>".encode()


def ingest(*urls: str, keep_missing: bool = False) -> Report:
    return ran(ingestion.plan("island", urls=urls or [MAP], keep_missing=keep_missing))


def stored_sources() -> set[str]:
    origins = Document.objects.values_list("origin", flat=True)
    return {origin.removeprefix(f"{SITE}/") for origin in origins}


def test_a_page_that_the_sitemap_names_no_more_is_removed_with_a_receipt(maps: Maps) -> None:
    maps[MAP] = ["fog", "pier", "crane"]
    ingest()
    maps[MAP] = ["fog", "crane"]
    outcome = ingest()
    assert (outcome.removed, outcome.unchanged, stored_sources()) == (1, 2, {"fog", "crane"})
    receipt = Receipt.objects.get()
    assert outcome.receipt == str(receipt.pk)
    assert [each["source"] for each in receipt.documents] == [f"{SITE}/pier"]
    assert (ingest().removed, stored_sources()) == (0, {"fog", "crane"})


def test_nothing_is_removed_when_less_than_half_is_left_until_it_is_named_again(
    maps: Maps,
) -> None:
    maps[MAP] = ["fog", "pier", "crane", "keeper"]
    ingest()
    maps[MAP] = ["fog"]
    for _ in range(2):
        outcome = ingest()
        assert (outcome.removed, len(stored_sources())) == (0, 4)
        (warning,) = outcome.warnings
        assert warning.source == MAP
        assert "less than half" in warning.reason
    maps[MAP] = ["fog", "pier", "crane"]
    assert (ingest().removed, stored_sources()) == (1, {"fog", "pier", "crane"})


def test_a_page_that_was_asked_for_by_itself_stays(maps: Maps) -> None:
    maps[MAP] = ["fog", "pier", "crane"]
    ingest()
    ingest(f"{SITE}/pier")
    maps[MAP] = ["fog", "crane"]
    assert (ingest().removed, len(stored_sources())) == (0, 3)


def test_a_page_goes_when_the_last_sitemap_that_named_it_does_not(maps: Maps) -> None:
    maps.update({MAP: ["fog", "pier"], OTHER_MAP: ["pier", "crane"]})
    ingest(MAP, OTHER_MAP)
    maps[MAP] = ["fog"]
    assert (ingest(MAP).removed, len(stored_sources())) == (0, 3)
    maps[OTHER_MAP] = ["crane"]
    assert (ingest(OTHER_MAP).removed, stored_sources()) == (1, {"fog", "crane"})


def test_pages_stay_while_missing_ones_are_kept_or_the_sitemap_cannot_be_read(
    maps: Maps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str) -> NoReturn:
        raise Unreadable("its server answered 503")

    maps[MAP] = ["fog", "pier", "crane"]
    ingest()
    maps[MAP] = ["fog", "crane"]
    assert (ingest(keep_missing=True).removed, len(stored_sources())) == (0, 3)
    with monkeypatch.context() as patched:
        patched.setattr(loader, "pages_of", refuse)
        assert (ingest().removed, len(stored_sources())) == (0, 3)
    assert (ingest().removed, len(stored_sources())) == (1, 2)


def test_a_page_that_moved_within_the_sitemap_keeps_its_id(maps: Maps) -> None:
    maps[MAP] = ["fog", "pier"]
    ingest()
    identity = Document.objects.get(origin=f"{SITE}/fog").pk
    maps[MAP] = ["pier", "twin"]
    ingest()
    assert Document.objects.get(origin=f"{SITE}/twin").pk == identity
    assert stored_sources() == {"pier", "twin"}


def test_a_copy_whose_page_is_gone_is_no_copy_any_more(maps: Maps) -> None:
    maps[MAP] = ["fog", "twin", "pier"]
    ingest()
    assert Copy.objects.count() == 1
    maps[MAP] = ["fog", "pier"]
    ingest()
    assert not Copy.objects.exists()
    assert stored_sources() == {"fog", "pier"}


def test_a_job_that_was_called_off_leaves_the_removal_to_the_next(
    maps: Maps, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps[MAP] = ["fog", "pier", "crane"]
    ingest()
    maps[MAP] = ["fog", "crane"]
    job = ingestion.plan("island", urls=[MAP])
    called_off(monkeypatch, lambda: ingestion.run(job.pk))
    assert Ingest.objects.get(pk=job.pk).status == "cancelled"
    assert len(stored_sources()) == 3
    assert (ingest().removed, stored_sources()) == (1, {"fog", "crane"})


def called_off(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Cancel the job once its sitemap is listed."""

    def cancel(*_: object) -> NoReturn:
        raise Cancelled

    with monkeypatch.context() as patched:
        patched.setattr(completion, "complete", cancel)
        work()
