"""Fetching: what is asked of the web, and what is never asked of the network inside."""

import gzip
import socket
from collections.abc import Iterator
from contextlib import suppress
from itertools import repeat
from threading import Thread

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from knowledge.errors import Unreadable
from knowledge.web import fetch

PAGE = "<html><title>Ferries</title><p>Ferries sail at noon.</p></html>"
METADATA = "169.254.169.254"


@pytest.fixture(autouse=True)
def bounds(settings: Settings) -> None:
    """Small bounds, and no host of one's own."""
    settings.FETCH_SECONDS = 20
    settings.FETCH_MAX_PAGES = 5
    settings.FETCH_PRIVATE_HOSTS = []
    settings.MAX_UPLOAD_BYTES = 100_000


@pytest.fixture
def site(httpserver: HTTPServer, settings: Settings) -> HTTPServer:
    """A server on this machine that the operator allows by host and port."""
    settings.FETCH_PRIVATE_HOSTS = [f"{httpserver.host}:{httpserver.port}"]
    httpserver.expect_request("/page").respond_with_data(PAGE, content_type="text/html")
    return httpserver


def test_a_page_comes_with_its_bytes_and_its_name(site: HTTPServer) -> None:
    site.expect_request("/guide/night ferry").respond_with_data(
        PAGE, content_type="text/html; charset=utf-8"
    )
    got = fetch(site.url_for("/guide/night%20ferry#boats"))
    assert got.body == PAGE.encode()
    assert got.name == "night-ferry.html"
    assert got.url == site.url_for("/guide/night%20ferry")


@pytest.mark.parametrize(
    ("kind", "charset"),
    [
        ("text/html; charset=windows-1253", "windows-1253"),
        ('text/html; Charset="ISO-8859-7"', "iso-8859-7"),
        ("text/html", ""),
        ("text/html; charset=", ""),
    ],
)
def test_a_page_comes_with_the_encoding_its_server_names(
    site: HTTPServer, kind: str, charset: str
) -> None:
    site.expect_request("/greek").respond_with_data(b"x", headers={"Content-Type": kind})
    assert fetch(site.url_for("/greek")).charset.lower() == charset


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/", "text/html", "localhost.html"),
        ("/docs/", "text/html", "docs.html"),
        ("/README.md", "text/html", "README.html"),
        ("/raw/README.md", "text/plain", "README.md"),
        ("/notes", "text/plain", "notes.txt"),
        ("/notes.html", "text/plain", "notes.txt"),
        ("/feed", "application/json", "feed.json"),
        ("/page.md", "application/octet-stream", "page.md"),
    ],
)
def test_the_name_follows_the_content_type_and_where_that_is_vague_the_path(
    site: HTTPServer, path: str, kind: str, name: str
) -> None:
    site.expect_request(path).respond_with_data("text", content_type=kind)
    assert fetch(site.url_for(path)).name == name


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "video/mp4"])
def test_other_content_types_are_refused_with_what_is_allowed(site: HTTPServer, kind: str) -> None:
    site.expect_request("/thing").respond_with_data(b"\x89PNG", content_type=kind)
    with pytest.raises(Unreadable, match=rf"{kind}.*\.md, .*\.html"):
        fetch(site.url_for("/thing"))


def test_redirects_are_followed_and_the_last_address_is_the_source(site: HTTPServer) -> None:
    site.expect_request("/old").respond_with_data(status=301, headers={"Location": "new/"})
    site.expect_request("/new/").respond_with_data(status=302, headers={"Location": "/page"})
    assert fetch(site.url_for("/old")).url == site.url_for("/page")


def test_a_circle_of_redirects_ends(site: HTTPServer) -> None:
    site.expect_request("/round").respond_with_data(status=302, headers={"Location": "/round"})
    with pytest.raises(Unreadable, match="redirects more than 5 times"):
        fetch(site.url_for("/round"))
    assert len(site.log) == 6


def test_the_second_address_is_tried_when_the_first_refuses(
    site: HTTPServer, settings: Settings
) -> None:
    settings.FETCH_PRIVATE_HOSTS = [f"docs.test:{site.port}"]
    url = f"http://docs.test:{site.port}/page"
    assert fetch(url, resolve=lambda host, port: ["127.0.0.9", "127.0.0.1"]).body == PAGE.encode()


def test_an_unknown_host_and_a_closed_door_are_told_apart(settings: Settings) -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(Unreadable, match=r"no host 'docs\.test' to be found"):
        fetch("http://docs.test/", resolve=unknown)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{closed.getsockname()[1]}"
        settings.FETCH_PRIVATE_HOSTS = [place]
        with pytest.raises(Unreadable, match="connection to its server failed"):
            fetch(f"http://{place}/")


def test_proxies_of_the_environment_are_passed_by(
    site: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert fetch(site.url_for("/page")).body == PAGE.encode()


def test_a_server_that_stumbles_once_is_asked_again(site: HTTPServer) -> None:
    site.expect_ordered_request("/shaky").respond_with_data(status=503)
    site.expect_ordered_request("/shaky").respond_with_data(PAGE, content_type="text/html")
    assert fetch(site.url_for("/shaky")).body == PAGE.encode()


@pytest.mark.parametrize(("status", "asked"), [(503, 2), (404, 1), (403, 1), (204, 1)])
def test_another_status_is_named(site: HTTPServer, status: int, asked: int) -> None:
    site.expect_request("/gone").respond_with_data(status=status)
    with pytest.raises(Unreadable, match=f"answered {status}"):
        fetch(site.url_for("/gone"))
    assert len(site.log) == asked


def test_a_page_that_is_too_large_is_given_up(site: HTTPServer) -> None:
    def endless(request: Request) -> Response:
        return Response(repeat(b"x" * 65_536), mimetype="text/html")

    site.expect_request("/large").respond_with_handler(endless)
    with pytest.raises(Unreadable, match=r"larger than 100,000 bytes \(MAX_UPLOAD_BYTES\)"):
        fetch(site.url_for("/large"))


def test_bytes_are_counted_after_decompression(site: HTTPServer) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    site.expect_request("/bomb").respond_with_data(
        bomb, content_type="text/html", headers={"Content-Encoding": "gzip"}
    )
    site.expect_request("/small").respond_with_data(
        gzip.compress(PAGE.encode()), content_type="text/html", headers={"Content-Encoding": "gzip"}
    )
    with pytest.raises(Unreadable, match="larger than 100,000 bytes"):
        fetch(site.url_for("/bomb"))
    assert fetch(site.url_for("/small")).body == PAGE.encode()


def test_a_broken_compression_is_named(site: HTTPServer) -> None:
    site.expect_request("/broken").respond_with_data(
        b"no gzip", content_type="text/html", headers={"Content-Encoding": "gzip"}
    )
    with pytest.raises(Unreadable, match="cannot be decompressed"):
        fetch(site.url_for("/broken"))


@pytest.fixture(
    params=[b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"]
)
def dripping(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a server that never ends: in its headers, or in its body."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.sendall(request.param)
                    connection.settimeout(0.05)
                    while True:
                        connection.sendall(b"a")
                        with suppress(TimeoutError):
                            connection.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_an_answer_that_never_ends_is_given_up(dripping: int, settings: Settings) -> None:
    settings.FETCH_SECONDS = 0.3
    settings.FETCH_PRIVATE_HOSTS = [f"127.0.0.1:{dripping}"]
    with pytest.raises(Unreadable, match=r"within 0\.3 seconds \(FETCH_SECONDS\)"):
        fetch(f"http://127.0.0.1:{dripping}/")
