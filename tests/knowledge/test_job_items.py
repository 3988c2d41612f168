"""Items that hold others: the files of a zip and the pages of a sitemap are items of their own."""

from io import BytesIO
from pathlib import Path
from typing import NoReturn
from zipfile import ZipFile

import pytest

from knowledge import ingestion
from knowledge.errors import Unreadable
from knowledge.fetching import Fetched
from knowledge.ingestion import loading
from knowledge.models import Document
from tests.knowledge.jobs import ran, states, upload

pytestmark = pytest.mark.django_db


def zipped(**files: str) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.md", text)
    return packed.getvalue()


def test_files_in_an_uploaded_zip_are_items_of_their_own() -> None:
    body = zipped(fog="The foghorn sounds twice.", empty="", pier="The pier has a crane.")
    job = upload(body, "island.zip")
    assert ran(job).new == 2
    assert states(job) == {
        "island.zip": "listed",
        "island.zip/fog.md": "new",
        "island.zip/empty.md": "skipped",
        "island.zip/pier.md": "new",
    }
    assert not job.items.exclude(status="skipped").exclude(body=None).exists()
    assert ran(upload(body, "island.zip")).unchanged == 2


def test_files_gone_from_a_zip_are_removed_if_it_lies_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "isle").mkdir()
    path = tmp_path / "isle" / "all.zip"
    path.write_bytes(zipped(fog="The foghorn sounds twice.", pier="The pier has a crane."))
    ran(ingestion.plan("island", paths=[path.parent]))
    path.write_bytes(zipped(pier="The pier has a crane."))
    assert ran(ingestion.plan("island", paths=[path.parent])).removed == 1
    assert Document.objects.get().source == "isle/all.zip/pier.md"
    path.write_bytes(b"no zip any more")
    made = ran(ingestion.plan("island", paths=[path.parent]))
    assert (made.removed, Document.objects.count()) == (0, 1)


def fetched(url: str, text: str) -> Fetched:
    return Fetched(url=url, name="page.html", body=text.encode())


def test_pages_of_a_sitemap_are_items_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    site = "https://example.com/sitemap.xml"
    pages = {
        "https://example.com/docs/fog": "<h1>Fog</h1><p>The foghorn sounds twice.</p>",
        "https://example.com/pier": "<h1>Pier</h1><p>The pier has a crane.</p>",
    }
    monkeypatch.setattr(loading, "pages_of", lambda url: [*pages] if url == site else [url])
    monkeypatch.setattr(loading, "fetch", lambda url: fetched(url, pages[url]))
    job = ingestion.plan("island", urls=[site])
    assert ran(job).new == 2
    assert states(job) == {site: "listed"} | dict.fromkeys(pages, "new")
    fog = Document.objects.get(source="https://example.com/docs/fog")
    assert (fog.title, fog.crumbs) == ("Fog", ["Docs"])
    # Only the mark-up changed, as it does on sites that stamp every answer.
    pages = {url: f"<body data-stamp='2'>{text}</body>" for url, text in pages.items()}
    assert ran(ingestion.plan("island", urls=[site])).unchanged == 2


def test_page_is_read_in_the_encoding_its_server_names(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Fetched("https://example.com/", "a.html", "<p>Η άδεια".encode("cp1253"), "windows-1253")
    monkeypatch.setattr(loading, "pages_of", lambda url: [url])
    monkeypatch.setattr(loading, "fetch", lambda url: page)
    ran(ingestion.plan("island", urls=[page.url]))
    assert Document.objects.get().content == "Η άδεια"


def test_page_that_cannot_be_fetched_keeps_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://example.com/fog"
    monkeypatch.setattr(loading, "pages_of", lambda url: [url])
    monkeypatch.setattr(loading, "fetch", lambda url: fetched(url, "<p>The foghorn is loud.</p>"))
    ran(ingestion.plan("island", urls=[url]))

    def refuse(url: str) -> NoReturn:
        raise Unreadable("its server answered 404 Not Found")

    monkeypatch.setattr(loading, "fetch", refuse)
    job = ingestion.plan("island", urls=[url])
    assert [each.reason for each in ran(job).skipped] == ["its server answered 404 Not Found"]
    assert (job.status, Document.objects.count()) == ("failed", 1)
