"""Links: takes out of an answer every address that no passage holds.

A passage may tell a model to put what it knows into the address of an image, which a browser then
fetches, or of a link, which somebody may follow. So images, links and bare addresses stay only when
they stand in a passage themselves.
"""

import html
import re
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

ADDRESS = r"(?:https?:)?//[^\s<>\"'\)\]]+|www\.[^\s<>\"'\)\]]+|mailto:[^\s<>\"'\)\]]+"
TAG = (
    r"</?[a-z][\w.-]*[\s/][^<>]*?=[^<>]*>"
    r"|</?(?:a|img|script|iframe|object|embed|link|style|form|svg|video|audio|base|meta)\b[^<>]*>"
)
LINKED = (
    r"(?P<image>!)?\[(?P<label>[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)?)\]"
    r"\(\s*<?(?P<target>(?:[^()\s>]|\([^()\s]*\))*)>?(?:\s+[\"'(][^)]*)?\)"
    r"|(?P<definition>^[ \t]*\[[^\]\n]+\]:[ \t]*\S+.*$)"
    rf"|(?P<tag>{TAG})"
    r"|<(?P<mail>[\w.+-]+@[\w.-]+)>"
    rf"|<?(?P<bare>{ADDRESS})>?"
)
FLAGS = re.DOTALL | re.IGNORECASE | re.MULTILINE
# A fence that opens a line, and what stands between ticks: as many at both ends, none escaped, and
# no end of a table's cell between them.
CODE = (
    r"^[^\S\n]*(?:(?:[-*+>]|\d{1,9}[.)])[^\S\n]+)*`{3,}[^`\n]*\n.*?(?:```|\Z)"
    r"|(?<![\\`])(?P<ticks>`+)(?!`)[^`\n|]*(?P=ticks)(?!`)"
)
# Code stays as it is; what only looks like code to this pattern is found by how it is rendered.
FOUND = re.compile(rf"(?P<code>{CODE})|{LINKED}", FLAGS)
FOUND_IN_CODE = re.compile(rf"(?P<code>(?!))|{LINKED}", FLAGS)
TRAILING = ".,;:!?*_\u3002\uff0c"
IN_TEXT = re.compile(ADDRESS, re.IGNORECASE)
MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
TAG_IN_TEXT = re.compile(TAG, re.IGNORECASE)
# They show what follows in another order than it has: an address as another one.
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
# What makes links of a text, and what escapes that.
SIGNS = re.compile(r"[\[\]<>\\]")
# As pages read answers: those that show tags as text, and those that let them pass.
READERS = [
    MarkdownIt("commonmark", {"html": html}).enable(["table", "strikethrough"])
    for html in (False, True)
]


class Addresses:
    """The addresses that passages hold."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._exact: set[str] = set()
        for text in texts:
            self._exact.update(map(_uniform, IN_TEXT.findall(text)))
            self._exact.update(f"mailto:{mail}" for mail in MAIL.findall(text))

    def hold(self, address: str, *, image: bool = False) -> bool:
        """Whether an address may stay: it is in a passage, or a page above one that is.

        Neither a path nor a query of somebody else's making may stay: it carries out what is in
        it, also to a host that a passage names.
        """
        address = _uniform(address)
        if address in self._exact:
            return True
        above = f"{address.rstrip('/')}/"
        is_whole = address.count("/") > 1 and not image
        return is_whole and any(exact.startswith(above) for exact in self._exact)


def _uniform(address: str) -> str:
    """An address as browsers understand it: escapes, letters of other scripts and all."""
    return READERS[0].normalizeLink(address.rstrip(TRAILING))


def harmless(text: str, addresses: Addresses) -> str:
    """Return `text` with images, links and addresses that `addresses` does not hold taken out.

    Of a link its words stay, of an image what it shows; code stays as it is. What this leaves is
    read as a page would be: where a link is live then, code is not spared, and where one still is,
    nothing stays that could make one.
    """
    text = TURNING.sub("", text)
    for found in (FOUND, FOUND_IN_CODE):
        cleaned = _without(found, text, addresses)
        if is_harmless(cleaned, addresses):
            return cleaned
    return _bare_words(text)


def is_harmless(text: str, addresses: Addresses) -> bool:
    """Whether a page would make no link of `text` but to what `addresses` holds."""
    return all(addresses.hold(address) for address in live_addresses(text))


def _without(found: re.Pattern[str], text: str, addresses: Addresses) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        if match["label"] is not None:
            known = addresses.hold(match["target"], image=match["image"] is not None)
            return match[0] if known else _without(found, match["label"], addresses)
        if match["mail"] is not None:
            return match[0] if addresses.hold(f"mailto:{match['mail']}") else match["mail"]
        if match["bare"] is not None:
            stays = addresses.hold(match["bare"])
            return match[0] if stays else _punctuation(match["bare"])
        return ""

    # What is taken out may have hidden another: a link within a link, an address around a tag.
    cleaned = found.sub(replacement, text)
    while cleaned != text:
        text, cleaned = cleaned, found.sub(replacement, cleaned)
    return cleaned


def live_addresses(text: str) -> Iterator[str]:
    """Yield every address that a reader of Markdown would make a link, an image or a tag of."""
    for reader in READERS:
        for block in reader.parse(text):
            yield from _addresses_of(block.children or [block])


def _addresses_of(tokens: Iterable[Token]) -> Iterator[str]:
    words = ""
    for token in tokens:
        if target := token.attrs.get("href") or token.attrs.get("src"):
            yield str(target)
        if token.type in {"html_inline", "html_block"}:
            yield from TAG_IN_TEXT.findall(token.content)
            yield from IN_TEXT.findall(token.content)
        words += token.content if token.type == "text" else " "
        yield from _addresses_of(token.children or [])
    # Some make links of what is only written like an address.
    yield from IN_TEXT.findall(words)


def _bare_words(text: str) -> str:
    """Return the text without any sign or address that could become a link."""
    words = SIGNS.sub("", html.unescape(text))
    while IN_TEXT.search(words):
        words = IN_TEXT.sub("", words)
    return words


def _punctuation(address: str) -> str:
    return address[len(address.rstrip(TRAILING)) :]
