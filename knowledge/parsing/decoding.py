"""Decoding: bytes into text, whatever encoding they turn out to be in."""

import codecs
import re
from unicodedata import category

from knowledge.errors import Unreadable
from knowledge.parsing.charsets import codec
from knowledge.parsing.guessing import guess

# UTF-32 first: its little-endian mark begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
# All bytes are ASCII, and these lead into another set of letters and back.
ESCAPE, ESCAPED = re.compile(rb"\x1b\$(?:[@B]|\(D)"), "iso2022_jp_ext"
SAMPLE = 8192
CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
# Neither letters nor signs nor spaces.
SENSELESS = frozenset({"Cc", "Cn", "Co", "Cs"})
# A text is still in an encoding with at most so many bad bytes for each good letter beyond ASCII,
# or with a single one in a short text.
FEW, ONE = 0.1, 0.5
REPLACED = "\ufffd"
BYTEWISE = ("cp125", "cp8", "iso8859", "koi8", "mac")  # how those begin in which a letter is a byte

Decoded = tuple[str, list[str]]  # and warnings


def decode(body: bytes, charset: str = "") -> Decoded:
    """Return the text and warnings. Raises Unreadable for binary and undecodable content.

    `charset` is what the file says it is in: that counts when the bytes are such a text.
    """
    if not body.strip():
        raise Unreadable("it is empty")
    for mark, encoding in MARKS:
        if body.startswith(mark):
            return mended(body, encoding)
    if is_binary(body[:SAMPLE]):
        if encoding := wide(body[:SAMPLE]):
            text, warnings = mended(body, encoding)
            return text, [f"no byte order mark: read as {encoding}", *warnings]
        raise Unreadable("it is a binary file and not text")
    if not charset:
        return unmarked(body)
    encoding = codec(charset)
    if encoding and (found := trusting(body, encoding)):
        return found
    text, warnings = unmarked(body)
    return text, [doubt(charset), *warnings]


def recoded(body: bytes, charset: str) -> tuple[bytes, list[str]]:
    """Return a text as UTF-8 with its mark, when it is in the encoding its server says it is in.

    The mark outweighs what the text then says about itself, as the server's word does in browsers
    (https://encoding.spec.whatwg.org/#decode). Otherwise return it as it is; and warnings.
    """
    if body.startswith(tuple(mark for mark, _ in MARKS)) or is_binary(body[:SAMPLE]):
        return body, []
    encoding = codec(charset)
    if encoding and (found := trusting(body, encoding)):
        return codecs.BOM_UTF8 + found[0].encode("utf-8", "replace"), found[1]
    return body, [doubt(charset)] if body.strip() else []


def doubt(charset: str) -> str:
    """Return a warning about what a text is said to be in."""
    return f"said to be in {charset[:40]!r}, which it is not, or which is not known here"


def trusting(body: bytes, encoding: str) -> Decoded | None:
    """Return a text that is said to be in an encoding; None when it is not, nor in UTF-8.

    Where a letter is a byte nearly all bytes are a text, but hardly any are UTF-8 by chance: such
    bytes were saved as UTF-8 by something that left alone what the text says.
    """
    is_utf8 = is_in(body, "utf-8")
    if is_in(body, encoding) and not (is_utf8 and encoding.startswith(BYTEWISE)):
        return body.decode(encoding), []
    if is_utf8:
        return body.decode(), [] if body.isascii() else [f"said to be in {encoding}, and is UTF-8"]
    return nearly(body, "utf-8") or nearly(body, encoding)


def unmarked(body: bytes) -> Decoded:
    """Return a text that does not say what it is in."""
    if ESCAPE.search(body) and is_in(body, ESCAPED):
        return body.decode(ESCAPED), [f"read as {ESCAPED}"]
    if is_in(body, "utf-8"):
        return body.decode(), []
    if found := nearly(body, "utf-8"):
        return found
    encoding = guess(body)
    if not encoding:
        raise Unreadable("its encoding is not known here; save it as UTF-8")
    text, warnings = mended(body, encoding)
    return text, [f"not UTF-8: read as {encoding}", *warnings]


def is_in(body: bytes, encoding: str) -> bool:
    """Tell whether every byte is of a text in that encoding."""
    try:
        body.decode(encoding)
    except UnicodeError:
        return False
    return True


def mended(body: bytes, encoding: str) -> Decoded:
    """Return the text, a few bad bytes replaced. Raises Unreadable when they are too many."""
    if is_in(body, encoding):
        return body.decode(encoding), []
    if found := nearly(body, encoding):
        return found
    raise Unreadable(f"it is not {encoding}, as it seemed to be; save it as UTF-8")


def nearly(body: bytes, encoding: str) -> Decoded | None:
    """Return the text when only few of its bytes are bad; None when that is not its encoding."""
    text = body.decode(encoding, errors="replace")
    bad = text.count(REPLACED)
    good = len(re.findall(r"[^\0-\x7f]", text)) - bad
    if bad > max(1, FEW * good) or bad > ONE * good:
        return None
    places = "1 damaged place" if bad == 1 else f"{bad:,} damaged places"
    return text, [f"{places}: what stood there is no {encoding}"]


def is_binary(sample: bytes) -> bool:
    """Tell a picture or an archive from text by the control characters in it."""
    return b"\0" in sample or len(sample.translate(None, CONTROL)) < 0.98 * len(sample)


def wide(sample: bytes) -> str:
    """Return the form of UTF-16 or UTF-32 in which the bytes are a text; nothing when in none."""
    for encoding in WIDE:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(sample)
        except UnicodeDecodeError:
            continue
        senseless = sum(category(sign) in SENSELESS and not sign.isspace() for sign in text)
        # A text has spaces, or ends of lines; random bytes that are all letters have none.
        if text and not senseless and re.search(r"[ \n\u3000-\u3002]", text):
            return encoding
    return ""
