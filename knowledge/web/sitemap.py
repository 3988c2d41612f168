"""Sitemaps: the pages a site names, as https://www.sitemaps.org/protocol.html has it."""

import gzip
import logging
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import islice
from xml.etree.ElementTree import ParseError

import httpx2
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser
from django.conf import settings

from knowledge.errors import Unreadable
from knowledge.web.fetch import Answer, allowed_url, get

ENDINGS = (".xml", ".xml.gz")
KINDS = {
    "", "application/gzip", "application/octet-stream", "application/x-gzip", "application/xml",
    "text/plain", "text/xml",
}  # fmt: skip
SITEMAPS_LIMIT = 50
GZIP = b"\x1f\x8b"
PAGE = ["urlset", "url", "loc"]
LASTMOD = ["urlset", "url", "lastmod"]
SITEMAP = ["sitemapindex", "sitemap", "loc"]

logger = logging.getLogger(__name__)


class Locations:
    """What an XML parser tells of a sitemap: nothing is kept but the addresses."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.lastmods: dict[str, str] = {}  # page → when it was changed, as the sitemap has it
        self.lastmod = ""
        self.sitemaps: list[str] = []
        self.path: list[str] = []
        self.space = ""  # the root's namespace: an image's <loc> has another
        self.text: list[str] = []

    def start(self, tag: str, attributes: object) -> None:
        """Go one element down."""
        space, _, name = tag.rpartition("}")
        if not self.path:
            self.space = space
        self.path.append(name if space == self.space else "")
        self.text = []

    def data(self, text: str) -> None:
        """Keep the text of an address."""
        if self.path in (PAGE, SITEMAP, LASTMOD):
            self.text.append(text)

    def end(self, tag: str) -> None:
        """Go one element up."""
        if self.path in (PAGE, SITEMAP):
            addresses = self.pages if self.path == PAGE else self.sitemaps
            addresses.append("".join(self.text).strip())
        elif self.path == LASTMOD:
            self.lastmod = "".join(self.text).strip()
        elif self.path == PAGE[:-1]:
            if self.lastmod and self.pages:
                self.lastmods[self.pages[-1]] = self.lastmod
            self.lastmod = ""
        self.path.pop()


def pages_of(url: str) -> dict[str, str]:
    """Return the pages a sitemap names, or the URL itself when its path is not a sitemap's.

    Behind each stands when it was changed, as the sitemap has it; nothing where it does not say.
    Pages and further sitemaps on other hosts are passed over, with a warning in the log. Raises
    Unreadable, also for more than FETCH_MAX_PAGES: what is left of a site must not be taken for
    the whole of it.
    """
    if not allowed_url(url).path.lower().endswith(ENDINGS):
        return {url: ""}
    limit = settings.FETCH_MAX_PAGES
    pages = dict(islice(walk(url), limit + 1))
    if len(pages) > limit:
        raise Unreadable(f"it names more than {limit:,} pages (FETCH_MAX_PAGES)")
    if not pages:
        raise Unreadable("it names no page of its own host")
    return pages


def walk(url: str) -> Iterator[tuple[str, str]]:
    """Yield (page, its change) once, of the sitemap and those it leads to. Raises Unreadable."""
    sitemaps, pages = [url], set[str]()
    for number, sitemap in enumerate(sitemaps, start=1):  # which grow meanwhile
        if number > SITEMAPS_LIMIT:
            raise Unreadable(f"it leads to more than {SITEMAPS_LIMIT} sitemaps")
        answer = get(sitemap, check_sitemap_type)
        named_locations = parse_locations(unzip(answer))
        # example.com may have led to www.example.com.
        hosts = {answer.url.host, httpx2.URL(sitemap).host}
        sitemaps += [
            location
            for location in own_urls(named_locations.sitemaps, hosts)
            if location not in sitemaps
        ]
        for page in own_urls(named_locations.pages, hosts):
            if page not in pages:
                pages.add(page)
                yield page, named_locations.lastmods.get(page, "")


def check_sitemap_type(kind: str, url: httpx2.URL) -> None:
    """Raise Unreadable when that content type is no sitemap's."""
    if kind not in KINDS:
        raise Unreadable(f"its content type is {kind}, and a sitemap is XML, plain or in gzip")


def own_urls(urls: Iterable[str], hosts: set[str]) -> Iterator[str]:
    """Yield those that may be asked for and lie on one of the hosts."""
    for url in urls:
        try:
            own_url = allowed_url(url)
        except Unreadable as error:
            logger.warning("Passed over %r in a sitemap: %s", url, error)
            continue
        if own_url.host in hosts:
            yield str(own_url)
        else:
            logger.warning("Passed over %s: the sitemap is for %s", url, " and ".join(hosts))


def unzip(answer: Answer) -> bytes:
    """Return the sitemap's XML, at most MAX_UPLOAD_BYTES of it. Raises Unreadable."""
    if not answer.body.startswith(GZIP):
        return answer.body
    limit = settings.MAX_UPLOAD_BYTES
    try:
        with gzip.open(BytesIO(answer.body)) as file:
            content = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"it cannot be decompressed: {error}") from error
    if len(content) > limit:
        raise Unreadable(f"it is larger than {limit:,} bytes unpacked (MAX_UPLOAD_BYTES)")
    return content


def parse_locations(content: bytes) -> Locations:
    """Return the addresses in a sitemap's XML. Raises Unreadable."""
    named_locations = Locations()
    parser = DefusedXMLParser(target=named_locations, forbid_dtd=True)
    try:
        parser.feed(content)
        parser.close()
    except DefusedXmlException as error:
        raise Unreadable("it declares a document type, which no sitemap needs") from error
    except (ParseError, LookupError, ValueError) as error:
        raise Unreadable(f"it is not a sitemap: {error}") from error
    return named_locations
