"""Requests: one GET that follows redirects, within limits of time, size and reach."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import httpx2
from django.conf import settings

from knowledge.errors import Unreadable
from knowledge.fetching.addresses import Resolve, checked, look_up, parsed

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
Wanted = Callable[[str, httpx2.URL], object]


@dataclass(frozen=True)
class Answer:
    """What a server sent in the end."""

    url: httpx2.URL
    kind: str  # content type, lower case, without parameters
    charset: str  # of the content type, as the server says; empty when it does not
    body: bytes


class Faltered(Unreadable):
    """The server or the way to it failed; another attempt may go better."""


@cache
def trusted() -> ssl.SSLContext:
    """Return the certificates of the system, or those SSL_CERT_FILE names; made once, 20 ms."""
    return httpx2.create_ssl_context()


def get(url: str, wanted: Wanted, *, resolve: Resolve = look_up) -> Answer:
    """Return what the URL leads to. Raises Unreadable, saying what was wrong.

    Each hop looks its host up once and connects to an address that was checked, so that no later
    answer of the name server can lead elsewhere. Proxies of the environment are not used: they
    would look the name up again.
    """
    try:
        return asyncio.run(in_time(parsed(url), wanted, resolve))
    except TimeoutError as error:
        raise Unreadable(
            f"it did not arrive within {settings.FETCH_SECONDS} seconds (FETCH_SECONDS)"
        ) from error


async def in_time(url: httpx2.URL, wanted: Wanted, resolve: Resolve) -> Answer:
    """Follow redirects to the answer. Raises Unreadable and TimeoutError."""
    async with asyncio.timeout(settings.FETCH_SECONDS):
        found = await hop(url, wanted, resolve)
        for _ in range(REDIRECTS):
            if isinstance(found, Answer):
                return found
            try:
                found = await hop(parsed(str(found)), wanted, resolve)
            except Unreadable as error:
                raise Unreadable(f"it redirects to {found}: {error}") from error
    if isinstance(found, Answer):
        return found
    raise Unreadable(f"it redirects more than {REDIRECTS} times")


async def hop(url: httpx2.URL, wanted: Wanted, resolve: Resolve) -> Answer | httpx2.URL:
    """Return the answer, or where it redirects. Asks twice, at two addresses if there are."""
    addresses = await asyncio.to_thread(checked, url, resolve)
    first, second = (addresses * 2)[:2]
    try:
        return await ask(url, first, wanted)
    except Faltered:
        await asyncio.sleep(PAUSE_SECONDS)
        return await ask(url, second, wanted)


async def ask(url: httpx2.URL, address: str, wanted: Wanted) -> Answer | httpx2.URL:
    """Send the request to that address and no other. Raises Unreadable.

    The name stays in the Host header and is what the certificate is checked against.
    """
    client = httpx2.AsyncClient(
        verify=trusted(),
        trust_env=False,
        headers=HEADERS,
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
            return await answer(url, response, wanted)
    except httpx2.InvalidURL as error:
        raise Unreadable(f"it redirects to what is no web address: {error}") from error
    except httpx2.DecodingError as error:
        raise Unreadable(f"what it sends cannot be decompressed: {error}") from error
    except httpx2.TransportError as error:
        reason = str(error) or type(error).__name__
        raise Faltered(f"the connection to its server failed: {reason}") from error


async def answer(url: httpx2.URL, response: httpx2.Response, wanted: Wanted) -> Answer:
    """Return the response, read up to the limit. Raises Unreadable."""
    status = f"{response.status_code} {response.reason_phrase}".strip()
    if response.is_server_error:
        raise Faltered(f"its server answered {status}")
    if response.status_code != httpx2.codes.OK:
        raise Unreadable(f"its server answered {status}: only what anybody may read can be fetched")
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    wanted(kind, url)
    return Answer(
        url=url,
        kind=kind,
        charset=response.charset_encoding or "",
        body=await body(response),
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
