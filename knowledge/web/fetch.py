"""Fetch: one document from the web, and from nowhere inside the network."""

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

import httpx2
from django.conf import settings

from knowledge.errors import Unreadable
from knowledge.parsing import FORMATS, is_readable

# Host and port to numeric addresses, the best first. Raises OSError when there are none.
Resolve = Callable[[str, int], list[str]]

PORTS = {"http": 80, "https": 443}
# Below them are mail, shells and the like: a request sent there can be taken for their commands.
UNPRIVILEGED = range(1024, 65_536)
# The one block IANA has given out for hosts on the internet (RFC 4291, 2.4).
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


def look_up(host: str, port: int) -> list[str]:
    """Return the addresses the system's resolver gives. Raises OSError."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


def allowed_url(url: str) -> httpx2.URL:
    """Return the URL without its fragment. Raises Unreadable when it may not be asked for."""
    try:
        parts = httpx2.URL(url.strip())
    except httpx2.InvalidURL as error:
        raise Unreadable(f"it is not a valid web address: {error}") from error
    if parts.scheme not in PORTS or not parts.host:
        raise Unreadable("it is not a web address: it has to begin with http:// or https://")
    if parts.userinfo:
        raise Unreadable(
            "it holds a user name or password: only pages that need none can be ingested"
        )
    port = port_of(parts)
    if port not in PORTS.values() and port not in UNPRIVILEGED:
        raise Unreadable(
            f"web pages are not fetched from port {port}: 80, 443 and 1024 to 65535 are allowed"
        )
    return parts.copy_with(fragment=None)


def port_of(url: httpx2.URL) -> int:
    """Return the port the URL leads to, said or not."""
    return PORTS[url.scheme] if url.port is None else url.port


def reachable_addresses(url: httpx2.URL, resolve: Resolve) -> list[str]:
    """Return the addresses of the URL's host, every one of which may be reached.

    One bad address spoils them all: which one answers would be for others to choose.
    Raises Unreadable.
    """
    try:
        addresses = resolve(url.raw_host.decode(), port_of(url))
    except (OSError, UnicodeError) as error:
        raise Unreadable(f"there is no host {url.host!r} to be found") from error
    if not addresses:
        raise Unreadable(f"there is no host {url.host!r} to be found")
    if not is_allowed_private_host(url):
        for address in addresses:
            if not is_public(address):
                raise Unreadable(
                    f"its host leads to {address}, which is no public address: only public ones "
                    "may be fetched from, and the hosts that FETCH_PRIVATE_HOSTS names"
                )
    return addresses


def is_allowed_private_host(url: httpx2.URL) -> bool:
    """Tell whether the operator has named this host, with its port where that is unusual."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    names = {f"{host}:{port_of(url)}".lower()}
    if port_of(url) == PORTS[url.scheme]:
        names |= {host.lower(), url.raw_host.decode()}
    return not names.isdisjoint(name.strip().lower() for name in settings.FETCH_PRIVATE_HOSTS)


def is_public(address: str) -> bool:
    """Tell whether a numeric address is one that anybody on the internet may reach.

    An IPv6 address that carries an IPv4 address is judged by that one, too.
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    if ip.ipv4_mapped is not None:
        return is_public(str(ip.ipv4_mapped))
    if ip in NAT64:
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    if ip.sixtofour is not None and not is_public(str(ip.sixtofour)):
        return False
    return ip in GLOBAL_UNICAST and ip.is_global


REDIRECTS = 5
CONNECT_SECONDS = 5  # of FETCH_SECONDS: so that a dead address leaves time for the next
PAUSE_SECONDS = 0.5  # before asking again
HEADERS = {
    "User-Agent": "Docent (self-hosted documentation assistant)",
    "Accept": "text/html, text/markdown;q=0.9, */*;q=0.5",
    # Decoded in pieces of bounded size, which is what the limit on bytes relies on.
    "Accept-Encoding": "gzip, deflate",
}

# Told the content type and where it was found; raises Unreadable when nobody wants it.
TypeCheck = Callable[[str, httpx2.URL], object]


@dataclass(frozen=True)
class Answer:
    """What a server sent in the end."""

    url: httpx2.URL
    kind: str  # content type, lower case, without parameters
    charset: str  # of the content type, as the server says; empty when it does not
    body: bytes
    etag: str = ""
    last_modified: str = ""


class NotModified(Exception):
    """What is asked for has not changed since it was fetched before."""


class ServerFailure(Unreadable):
    """The server or the way to it failed; another attempt may go better."""


@cache
def certificates() -> ssl.SSLContext:
    """Return the certificates of the system, or those SSL_CERT_FILE names; made once, 20 ms."""
    return httpx2.create_ssl_context()


def get(
    url: str,
    check_type: TypeCheck,
    *,
    resolve: Resolve = look_up,
    etag: str = "",
    last_modified: str = "",
) -> Answer:
    """Return what the URL leads to. Raises Unreadable, saying what was wrong.

    Raises NotModified when the server says that it is still what it called by `etag` and
    `last_modified`.

    Each hop looks its host up once and connects to an address that was checked, so that no later
    answer of the name server can lead elsewhere. Proxies of the environment are not used: they
    would look the name up again.
    """
    try:
        conditions = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        headers = HEADERS | {name: value for name, value in conditions.items() if value}
        inquiry = Inquiry(check_type, resolve, headers)
        return asyncio.run(follow_redirects(allowed_url(url), inquiry))
    except TimeoutError as error:
        raise Unreadable(
            f"it did not arrive within {settings.FETCH_SECONDS} seconds (FETCH_SECONDS)"
        ) from error


@dataclass(frozen=True)
class Inquiry:
    """How something is asked for, whichever host it turns out to be at."""

    check_type: TypeCheck
    resolve: Resolve
    headers: dict[str, str]


async def follow_redirects(url: httpx2.URL, inquiry: Inquiry) -> Answer:
    """Follow redirects to the answer. Raises Unreadable and TimeoutError."""
    async with asyncio.timeout(settings.FETCH_SECONDS):
        result = await hop(url, inquiry)
        for _ in range(REDIRECTS):
            if isinstance(result, Answer):
                return result
            try:
                result = await hop(allowed_url(str(result)), inquiry)
            except Unreadable as error:
                raise Unreadable(f"it redirects to {result}: {error}") from error
    if isinstance(result, Answer):
        return result
    raise Unreadable(f"it redirects more than {REDIRECTS} times")


async def hop(url: httpx2.URL, inquiry: Inquiry) -> Answer | httpx2.URL:
    """Return the answer, or where it redirects. Asks twice, at two addresses if there are."""
    addresses = await asyncio.to_thread(reachable_addresses, url, inquiry.resolve)
    first, second = (addresses * 2)[:2]
    try:
        return await ask(url, first, inquiry)
    except ServerFailure:
        await asyncio.sleep(PAUSE_SECONDS)
        return await ask(url, second, inquiry)


async def ask(url: httpx2.URL, address: str, inquiry: Inquiry) -> Answer | httpx2.URL:
    """Send the request to that address and no other. Raises Unreadable.

    The name stays in the Host header and is what the certificate is checked against.
    """
    client = httpx2.AsyncClient(
        verify=certificates(),
        trust_env=False,
        headers=inquiry.headers,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
    )
    request = client.stream(
        "GET",
        url.copy_with(host=address),
        headers={"Host": url.netloc.decode()},
        extensions={"sni_hostname": url.raw_host.decode()},
    )
    try:
        async with client, request as response:
            if response.has_redirect_location:
                return url.join(response.headers["Location"])
            return await answer(url, response, inquiry.check_type)
    except httpx2.InvalidURL as error:
        raise Unreadable(f"it redirects to what is no web address: {error}") from error
    except httpx2.DecodingError as error:
        raise Unreadable(f"what it sends cannot be decompressed: {error}") from error
    except httpx2.TransportError as error:
        reason = str(error) or type(error).__name__
        raise ServerFailure(f"the connection to its server failed: {reason}") from error


async def answer(url: httpx2.URL, response: httpx2.Response, check_type: TypeCheck) -> Answer:
    """Return the response, read up to the limit. Raises Unreadable."""
    status = f"{response.status_code} {response.reason_phrase}".strip()
    if response.status_code == httpx2.codes.NOT_MODIFIED:
        raise NotModified
    if response.is_server_error:
        raise ServerFailure(f"its server answered {status}")
    if response.status_code != httpx2.codes.OK:
        raise Unreadable(f"its server answered {status}: only what anybody may read can be fetched")
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    check_type(kind, url)
    return Answer(
        url=url,
        kind=kind,
        charset=response.charset_encoding or "",
        body=await body(response),
        etag=response.headers.get("ETag", ""),
        last_modified=response.headers.get("Last-Modified", ""),
    )


async def body(response: httpx2.Response) -> bytes:
    """Return the decompressed bytes. Raises Unreadable as soon as they are too many."""
    limit = settings.MAX_UPLOAD_BYTES
    received = bytearray()
    async for piece in response.aiter_bytes():
        received += piece
        if len(received) > limit:
            raise Unreadable(f"it is larger than {limit:,} bytes (MAX_UPLOAD_BYTES)")
    return bytes(received)


OFFICE = "application/vnd.openxmlformats-officedocument"
EXTENSIONS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "text/plain": ".txt",
    "application/pdf": ".pdf",
    f"{OFFICE}.wordprocessingml.document": ".docx",
    f"{OFFICE}.presentationml.presentation": ".pptx",
    f"{OFFICE}.spreadsheetml.sheet": ".xlsx",
    "application/epub+zip": ".epub",
    "message/rfc822": ".eml",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "text/x-rst": ".rst",
    "text/prs.fallenstein.rst": ".rst",
    "application/json": ".json",
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
}
# Servers that know no better call Markdown and JSON plain text, and everything else a stream of
# bytes: there the path's end says more.
VAGUE = {"", "text/plain", "application/octet-stream", "binary/octet-stream"}
# A page that calls itself plain text is none of these, whatever its path.
NOT_PLAIN = {".html", ".htm", ".pdf", ".docx", ".pptx", ".xlsx", ".xlsm", ".epub"}
NAME_LENGTH = 100


@dataclass(frozen=True)
class Fetched:
    """A document as its server sent it."""

    url: str  # after all redirects
    name: str
    body: bytes
    charset: str = ""  # that its server says it is in
    etag: str = ""
    last_modified: str = ""


def fetch(
    url: str, *, resolve: Resolve = look_up, etag: str = "", last_modified: str = ""
) -> Fetched:
    """Return the document at the URL. Raises Unreadable, saying what was wrong, and as `get`.

    The name's extension is one that `knowledge.parsing` knows.
    """
    answer = get(url, file_name, resolve=resolve, etag=etag, last_modified=last_modified)
    return Fetched(
        url=str(answer.url),
        name=file_name(answer.kind, answer.url),
        body=answer.body,
        charset=answer.charset,
        etag=answer.etag,
        last_modified=answer.last_modified,
    )


def file_name(kind: str, url: httpx2.URL) -> str:
    """Return a name for a document of that content type. Raises Unreadable for other formats."""
    path = PurePosixPath(url.path)
    suffix = extension_for(kind, path.suffix.lower())
    if not is_readable(f"name{suffix}"):
        raise Unreadable(
            f"its content type is {kind or 'not said'}, and it can only be ingested as one of "
            f"{', '.join(FORMATS)}"
        )
    stem = re.sub(r"[^\w.-]+", "-", path.stem).strip("-.")[:NAME_LENGTH]
    return f"{stem or url.host}{suffix}"


def extension_for(kind: str, suffix: str) -> str:
    """Return the extension the content type calls for; the path's own where the type is vague."""
    is_plain = kind == "text/plain"
    if kind in VAGUE and is_readable(f"name{suffix}") and not (is_plain and suffix in NOT_PLAIN):
        return suffix
    return EXTENSIONS.get(kind, "")
