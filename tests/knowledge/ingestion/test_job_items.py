"""Items that hold others: the files of a zip and the pages of a sitemap are items of their own."""

from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer

from knowledge import ingestion
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
    outcome = ran(ingestion.plan("island", paths=[path.parent]))
    assert (outcome.removed, Document.objects.count()) == (0, 1)


@pytest.fixture
def site(httpserver: HTTPServer, settings: Settings) -> HTTPServer:
    """A server on this machine that the operator allows."""
    settings.FETCH_PRIVATE_HOSTS = [f"{httpserver.host}:{httpserver.port}"]
    return httpserver


def serve(site: HTTPServer, path: str, page: str | bytes, kind: str = "text/html") -> str:
    """Answer once with a page; return its address."""
    site.expect_oneshot_request(path).respond_with_data(page, content_type=kind)
    return site.url_for(path)


def serve_map(site: HTTPServer, *urls: str) -> str:
    """Answer once with a sitemap that names these addresses; return its own."""
    locs = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'
    return serve(site, "/sitemap.xml", body, "application/xml")


def test_pages_of_a_sitemap_are_items_of_their_own(site: HTTPServer) -> None:
    texts = {
        "/docs/fog": "<h1>Fog</h1><p>The foghorn sounds twice.</p>",
        "/pier": "<h1>Pier</h1><p>The pier has a crane.</p>",
    }
    pages = [serve(site, path, text) for path, text in texts.items()]
    address = serve_map(site, *pages)
    job = ingestion.plan("island", urls=[address])
    assert ran(job).new == 2
    assert states(job) == {address: "listed"} | dict.fromkeys(pages, "new")
    fog = Document.objects.get(source=pages[0])
    assert (fog.title, fog.crumbs) == ("Fog", ["Docs"])
    # Only the mark-up changed, as it does on sites that stamp every answer.
    for path, text in texts.items():
        serve(site, path, f"<body data-stamp='2'>{text}</body>")
    serve_map(site, *pages)
    assert ran(ingestion.plan("island", urls=[address])).unchanged == 2
    site.check_assertions()


def test_page_is_read_in_the_encoding_its_server_names(site: HTTPServer) -> None:
    page = "<p>Η άδεια".encode("cp1253")
    ran(ingestion.plan("island", urls=[serve(site, "/", page, "text/html; charset=windows-1253")]))
    assert Document.objects.get().content == "Η άδεια"


def test_page_that_cannot_be_fetched_keeps_its_document(site: HTTPServer) -> None:
    url = serve(site, "/fog", "<p>The foghorn is loud.</p>")
    ran(ingestion.plan("island", urls=[url]))
    site.expect_request("/fog").respond_with_data(status=404)
    job = ingestion.plan("island", urls=[url])
    (skipped,) = ran(job).skipped
    assert skipped.reason.lower().startswith("its server answered 404 not found")
    assert (job.status, Document.objects.count()) == ("failed", 1)
