"""Links: takes out of an answer every address that no passage holds.

A passage may tell a model to put what it knows into the address of an image, which a browser then
fetches. So images, links and bare addresses stay only when they stand in a passage themselves.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from agents.documentation.citations.markers import CODE

ADDRESS = r"(?:https?:)?//[^\s<>\"'\)\]]+|www\.[^\s<>\"'\)\]]+"
FOUND = re.compile(
    rf"(?P<code>{CODE})"
    r"|(?P<image>!)?\[(?P<label>[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)?)\]"
    r"\(\s*<?(?P<target>(?:[^()\s>]|\([^()\s]*\))*)>?(?:\s+[\"'(][^)]*)?\)"
    r"|(?P<definition>^[ \t]*\[[^\]\n]+\]:[ \t]*\S+.*$)"
    r"|(?P<tag></?[a-z][^<>]*?=[^<>]*>"
    r"|</?(?:a|img|script|iframe|object|embed|link|style|form|svg|video|audio|base|meta)\b[^<>]*>)"
    rf"|<?(?P<bare>{ADDRESS})>?",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
TRAILING = ".,;:!?*_\u3002\uff0c"
IN_TEXT = re.compile(ADDRESS, re.IGNORECASE)


class Addresses:
    """The addresses that passages hold."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._exact = {
            address.rstrip(TRAILING) for text in texts for address in IN_TEXT.findall(text)
        }
        self._hosts = {_host(address) for address in self._exact}

    def hold(self, address: str, *, image: bool = False) -> bool:
        """Whether an address may stay: it is in a passage, or a plain page of a host in one."""
        address = address.rstrip(TRAILING)
        if address in self._exact:
            return True
        parts = urlsplit(address if "//" in address else f"//{address}")
        plain = not (image or parts.query or parts.fragment or parts.username)
        return plain and bool(_host(address)) and _host(address) in self._hosts


def _host(address: str) -> str:
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""


def harmless(text: str, addresses: Addresses) -> str:
    """Return `text` with images, links and addresses that `addresses` does not hold taken out.

    Of a link its words stay, of an image what it shows; code stays as it is.
    """

    def replacement(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        if match["label"] is not None:
            known = addresses.hold(match["target"], image=match["image"] is not None)
            return match[0] if known else harmless(match["label"], addresses)
        if match["bare"] is not None:
            stays = addresses.hold(match["bare"])
            return match[0] if stays else _punctuation(match["bare"])
        return ""

    # What is taken out may have hidden another: a link within a link, an address around a tag.
    cleaned = FOUND.sub(replacement, text)
    while cleaned != text:
        text, cleaned = cleaned, FOUND.sub(replacement, cleaned)
    return cleaned


def _punctuation(address: str) -> str:
    return address[len(address.rstrip(TRAILING)) :]
