"""Decoding: bytes into text, whatever encoding they turn out to be in."""

import codecs
import re

from knowledge.errors import Unreadable

# UTF-32 first: its little-endian mark begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE = 8192
CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
# Above this share of bytes beyond ASCII a text is not Western European any more.
WESTERN = 0.25


def decode(body: bytes) -> tuple[str, list[str]]:
    """Return the text and warnings. Raises Unreadable for binary and undecodable content."""
    if not body.strip():
        raise Unreadable("it is empty")
    for mark, encoding in MARKS:
        if body.startswith(mark):
            return in_encoding(body, encoding), []
    if is_binary(body[:SAMPLE]):
        raise Unreadable("it is a binary file and not text")
    try:
        return body.decode(), []
    except UnicodeDecodeError:
        encoding = legacy(body)
        return in_encoding(body, encoding), [f"not UTF-8: read as {encoding}"]


def in_encoding(body: bytes, encoding: str) -> str:
    """Return the text; raise Unreadable when the bytes are not in that encoding."""
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"it is not {encoding}, as it seemed to be: byte {error.start} is no such text; "
            "save it as UTF-8"
        ) from error


def is_binary(sample: bytes) -> bool:
    """Tell a picture or an archive from text by the control characters in it."""
    return b"\0" in sample or len(sample.translate(None, CONTROL)) < 0.98 * len(sample)


def legacy(body: bytes) -> str:
    """Return the eight-bit encoding the bytes are most likely in."""
    beyond = len(re.findall(rb"[\x80-\xff]", body))
    if beyond <= WESTERN * len(body):
        return "cp1252"
    cyrillic = re.findall(r"[\u0430-\u044f\u0451]", body.decode("cp1251", errors="ignore"))
    if len(cyrillic) >= 0.8 * beyond:
        return "cp1251"
    raise Unreadable("its encoding is not known here; save it as UTF-8")
