"""Reach: no request ever goes to an address inside, whatever a URL, a redirect or a name says."""

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from knowledge.errors import Unreadable
from knowledge.web import fetch
from knowledge.web.fetch import certificates, is_public

PAGE = "<html><title>Ferries</title><p>Ferries sail at noon.</p></html>"
METADATA = "169.254.169.254"


@pytest.fixture
def site(httpserver: HTTPServer, settings: Settings) -> HTTPServer:
    """A server on this machine that the operator allows by host and port."""
    settings.FETCH_PRIVATE_HOSTS = [f"{httpserver.host}:{httpserver.port}"]
    httpserver.expect_request("/page").respond_with_data(PAGE, content_type="text/html")
    return httpserver


def answering(*answers: str) -> Callable[[str, int], list[str]]:
    """A name server that gives each answer once, the last for ever; it counts in `asked`."""

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return [answers[min(len(asked), len(answers)) - 1]]

    asked: list[str] = []
    resolve.asked = asked  # type: ignore[attr-defined]
    return resolve


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/page",
        f"http://{METADATA}/latest/meta-data/",
        "http://[::1]:{port}/page",
        "http://[::ffff:127.0.0.1]:{port}/page",
        "http://2130706433:{port}/page",
        "http://0x7f.1:{port}/page",
        "http://0:{port}/page",
        "//127.0.0.1:{port}/page",
    ],
)
def test_a_redirect_to_an_address_inside_is_not_followed(site: HTTPServer, target: str) -> None:
    """The site itself is allowed as `localhost`: its number is not."""
    location = target.format(port=site.port)
    site.expect_request("/away").respond_with_data(status=302, headers={"Location": location})
    with pytest.raises(Unreadable, match=r"redirects to .* no public address"):
        fetch(site.url_for("/away"))
    assert [request.path for request, _ in site.log] == ["/away"]


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://x/", "http://a:b@x.test/"])
def test_a_redirect_to_another_scheme_or_with_a_password_is_refused(
    site: HTTPServer, location: str
) -> None:
    site.expect_request("/away").respond_with_data(status=302, headers={"Location": location})
    with pytest.raises(Unreadable, match="it redirects to"):
        fetch(site.url_for("/away"))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://docs.test/", "has to begin with http"),
        ("docs.test/page", "has to begin with http"),
        ("http://", "has to begin with http"),
        ("http://user:secret@docs.test/", "user name or password"),
        ("http://docs.test:22/", "port 22"),
        ("http://docs.test:99999/", "port 99999"),
        ("http://127.0.0.01/", "not a valid web address"),
        ("http://docs.test/\x00", "not a valid web address"),
    ],
)
def test_what_is_no_address_of_a_public_page_is_refused_before_its_name_is_looked_up(
    url: str, reason: str
) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    with pytest.raises(Unreadable, match=reason):
        fetch(url, resolve=resolve)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", METADATA, "2130706433", "0x7f000001", "0x7f.1", "localhost", "[::1]", "0"]
)
def test_this_machine_is_refused_however_it_is_spelled(httpserver: HTTPServer, host: str) -> None:
    with pytest.raises(Unreadable, match="FETCH_PRIVATE_HOSTS"):
        fetch(f"http://{host}:{httpserver.port}/")
    assert httpserver.log == []


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.1.2.3",  # noqa: S104
        "100.64.0.1", "127.8.8.8", METADATA, "172.16.0.1", "192.168.0.1",
        "198.18.0.1", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::7f00:1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "fc00::1", "fe80::1",
        "fe80::1%lo", "fec0::1", "ff02::1", "2001:db8::1", "2001::1", "2002:7f00:1::",
        "2002:a9fe:a9fe::1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "4000::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:4700::1111", "64:ff9b::93.184.216.34", "::ffff:8.8.8.8"]
)
def test_public_addresses_are_known(address: str) -> None:
    assert is_public(address)


def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    with pytest.raises(Unreadable, match=r"10\.0\.0\.7, which is no public address"):
        fetch("http://docs.test/", resolve=lambda host, port: ["93.184.216.34", "10.0.0.7"])


def test_a_name_is_looked_up_once_and_the_checked_address_is_the_one_reached(
    site: HTTPServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FETCH_PRIVATE_HOSTS = [f"docs.test:{site.port}"]
    seen: list[Request] = []

    def remember(request: Request) -> Response:
        seen.append(request)
        return Response(PAGE, content_type="text/html")

    def nobody(*args: object, **options: object) -> None:
        raise AssertionError("looked up a second time")

    site.expect_request("/pinned").respond_with_handler(remember)
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    resolve = answering("127.0.0.1", "127.0.0.2")
    got = fetch(f"http://docs.test:{site.port}/pinned", resolve=resolve)
    assert got.url == f"http://docs.test:{site.port}/pinned"
    assert resolve.asked == ["docs.test"]  # type: ignore[attr-defined]
    assert seen[0].headers["Host"] == f"docs.test:{site.port}"
    assert "Docent" in seen[0].headers["User-Agent"]


def test_a_redirect_to_a_name_that_leads_inside_is_not_followed(site: HTTPServer) -> None:
    site.expect_request("/away").respond_with_data(
        status=302, headers={"Location": "http://docs.test/latest/"}
    )
    with pytest.raises(Unreadable, match=rf"redirects to http://docs.test/.*{METADATA}"):
        fetch(site.url_for("/away"), resolve=answering("127.0.0.1", METADATA))


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[trustme.CA]:
    """An authority whose certificates are trusted."""
    certificate_authority = trustme.CA()
    certificate_authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    certificates.cache_clear()
    yield certificate_authority
    certificates.cache_clear()


@pytest.mark.parametrize("name", ["docs.test", "other.test"])
def test_the_certificate_has_to_be_for_the_name_and_not_for_the_address(
    authority: trustme.CA, settings: Settings, name: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, "127.0.0.1").configure_cert(context)
    with HTTPServer(ssl_context=context) as server:
        server.expect_request("/").respond_with_data(PAGE, content_type="text/html")
        settings.FETCH_PRIVATE_HOSTS = [f"docs.test:{server.port}"]
        url = f"https://docs.test:{server.port}/"
        if name == "docs.test":
            assert fetch(url, resolve=answering("127.0.0.1")).body == PAGE.encode()
        else:
            with pytest.raises(Unreadable, match="certificate"):
                fetch(url, resolve=answering("127.0.0.1"))


@pytest.mark.parametrize("granted", ["docs.test", "docs.test:81", "test", ""])
def test_a_private_host_is_granted_with_its_port(
    site: HTTPServer, settings: Settings, granted: str
) -> None:
    settings.FETCH_PRIVATE_HOSTS = [granted]
    with pytest.raises(Unreadable, match="no public address"):
        fetch(f"http://docs.test:{site.port}/page", resolve=answering("127.0.0.1"))
    assert site.log == []
