"""Sitemaps: which pages of a site are named, and what is refused."""

import gzip
import re

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from knowledge.errors import Unreadable
from knowledge.web import pages_of

URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
INDEX = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'
METADATA = "169.254.169.254"


@pytest.fixture
def site(httpserver: HTTPServer, settings: Settings) -> HTTPServer:
    """A server on this machine that the operator allows, and small bounds."""
    settings.FETCH_PRIVATE_HOSTS = [f"{httpserver.host}:{httpserver.port}"]
    settings.FETCH_MAX_PAGES = 5
    settings.MAX_UPLOAD_BYTES = 100_000
    return httpserver


def locs(*urls: str, element: str = "url") -> str:
    return "".join(f"<{element}><loc>{url}</loc></{element}>" for url in urls)


def test_a_page_is_its_own_only_page() -> None:
    assert [*pages_of("https://docs.test/guide")] == ["https://docs.test/guide"]


def test_a_sitemap_names_its_pages_once_and_no_other_hosts(site: HTTPServer) -> None:
    own = [site.url_for("/a"), site.url_for("/b?x=1&amp;y=2"), site.url_for("/a#part")]
    foreign = ["https://elsewhere.test/c", "ftp://localhost/d", f"http://{METADATA}/", "nonsense"]
    image = '<url><i:image xmlns:i="http://images"><i:loc>/no</i:loc></i:image></url>'
    body = URLSET.format(locs(*own, *foreign) + image)
    site.expect_request("/sitemap.xml").respond_with_data(body, content_type="application/xml")
    assert [*pages_of(site.url_for("/sitemap.xml"))] == [
        site.url_for("/a"),
        site.url_for("/b?x=1&y=2"),
    ]


def test_an_index_leads_to_its_sitemaps_in_gzip_too_and_in_no_circles(site: HTTPServer) -> None:
    inner = [site.url_for("/one.xml"), site.url_for("/two.xml.gz"), site.url_for("/index.xml")]
    site.expect_request("/index.xml").respond_with_data(
        INDEX.format(locs(*inner, "http://elsewhere.test/three.xml", element="sitemap")),
        content_type="text/xml",
    )
    site.expect_request("/one.xml").respond_with_data(
        URLSET.format(locs(site.url_for("/a"))), content_type="text/xml"
    )
    site.expect_request("/two.xml.gz").respond_with_data(
        gzip.compress(URLSET.format(locs(site.url_for("/b"))).encode()),
        content_type="application/gzip",
    )
    assert [*pages_of(site.url_for("/index.xml"))] == [site.url_for("/a"), site.url_for("/b")]


def test_sitemaps_that_lead_to_sitemaps_without_end_are_refused(site: HTTPServer) -> None:
    def more(request: Request) -> Response:
        following = site.url_for(f"/{request.path.strip('/').removesuffix('.xml')}x.xml")
        return Response(INDEX.format(locs(following, element="sitemap")), mimetype="text/xml")

    site.expect_request(re.compile(r".*")).respond_with_handler(more)
    with pytest.raises(Unreadable, match="more than 50 sitemaps"):
        pages_of(site.url_for("/x.xml"))


def test_too_many_pages_and_none_at_all_are_refused(site: HTTPServer) -> None:
    many = URLSET.format(locs(*(site.url_for(f"/{number}") for number in range(6))))
    site.expect_request("/many.xml").respond_with_data(many, content_type="text/xml")
    site.expect_request("/none.xml").respond_with_data(URLSET, content_type="text/xml")
    with pytest.raises(Unreadable, match=r"more than 5 pages \(FETCH_MAX_PAGES\)"):
        pages_of(site.url_for("/many.xml"))
    with pytest.raises(Unreadable, match="no page of its own host"):
        pages_of(site.url_for("/none.xml"))


def test_a_sitemap_that_expands_is_refused(site: HTTPServer) -> None:
    entities = "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' if n else '<!ENTITY e0 "lol">' for n in range(9)
    )
    laughs = f"<!DOCTYPE x [{entities}]>" + URLSET.format(locs("&e8;"))
    site.expect_request("/laughs.xml").respond_with_data(laughs, content_type="text/xml")
    with pytest.raises(Unreadable, match="declares a document type"):
        pages_of(site.url_for("/laughs.xml"))
    site.expect_request("/bomb.xml.gz").respond_with_data(
        gzip.compress(bytes(50_000_000)), content_type="application/gzip"
    )
    with pytest.raises(Unreadable, match="unpacked"):
        pages_of(site.url_for("/bomb.xml.gz"))


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ("<urlset>", "text/xml", "not a sitemap"),
        ("", "text/xml", "not a sitemap"),
        ("<html></html>", "text/html", "content type is text/html"),
        ("\x1f\x8bno", "text/xml", "cannot be decompressed"),
        ('<?xml version="1.0" encoding="nonsense"?><urlset/>', "text/xml", "not a sitemap"),
    ],
)
def test_what_is_no_sitemap_is_named(site: HTTPServer, body: str, kind: str, reason: str) -> None:
    site.expect_request("/map.xml").respond_with_data(body.encode("latin-1"), content_type=kind)
    with pytest.raises(Unreadable, match=reason):
        pages_of(site.url_for("/map.xml"))
