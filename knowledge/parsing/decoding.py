"""Decoding: bytes into text, whatever encoding they turn out to be in."""

import codecs
import re
from unicodedata import category

from charset_normalizer import from_bytes

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
# Above this share of bytes beyond ASCII a text is not in Latin letters any more.
LATIN = 0.25
# With fewer bytes beyond ASCII, guesses among the Latin encodings are worse than the commonest.
EVIDENCE = 40
# Read as the other of these, small letters become capital ones.
CYRILLIC = ("cp1251", "koi8-r")
# Neither letters nor signs nor spaces.
SENSELESS = frozenset({"Cc", "Cn", "Co", "Cs"})


def decode(body: bytes) -> tuple[str, list[str]]:
    """Return the text and warnings. Raises Unreadable for binary and undecodable content."""
    if not body.strip():
        raise Unreadable("it is empty")
    for mark, encoding in MARKS:
        if body.startswith(mark):
            return in_encoding(body, encoding), []
    if is_binary(body[:SAMPLE]):
        if encoding := wide(body[:SAMPLE]):
            return in_encoding(body, encoding), [f"no byte order mark: read as {encoding}"]
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


def wide(sample: bytes) -> str:
    """Return the form of UTF-16 in which the bytes are a text; nothing when they are none."""
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = sample[: len(sample) // 2 * 2 - 2].decode(encoding)
        except UnicodeDecodeError:
            continue
        senseless = sum(category(sign) in SENSELESS and not sign.isspace() for sign in text)
        # A text has spaces, or ends of lines; random bytes that are all letters have none.
        if text and not senseless and re.search(r"[ \n\u3000-\u3002]", text):
            return encoding
    return ""


def legacy(body: bytes) -> str:
    """Return the encoding before Unicode that the bytes are most likely in."""
    beyond = len(re.findall(rb"[\x80-\xff]", body))
    is_latin = beyond <= LATIN * len(body)
    if is_latin and beyond < EVIDENCE:
        return "cp1252"
    for encoding in () if is_latin else CYRILLIC:
        small = re.findall(r"[\u0430-\u044f\u0451]", body.decode(encoding, errors="ignore"))
        if len(small) >= 0.8 * beyond:
            return encoding
    best = from_bytes(body).best()
    if best is not None:
        return best.encoding
    if is_latin:
        return "cp1252"
    raise Unreadable("its encoding is not known here; save it as UTF-8")
