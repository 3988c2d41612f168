"""Encoding: which one the bytes of a text are in, said or guessed, and the text they hold."""

import codecs
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from unicodedata import category, normalize

from bs4.dammit import EncodingDetector
from charset_normalizer import from_bytes
from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
from langdetect.utils.ngram import NGram

from knowledge.errors import Unreadable

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
SENSELESS_CATEGORIES = frozenset({"Cc", "Cn", "Co", "Cs"})
# A text is still in an encoding with at most so many bad bytes for each good letter beyond ASCII,
# or with a single one in a short text.
FEW_SHARE, ONE = 0.1, 0.5
REPLACEMENT = "\ufffd"
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
            return decode_leniently(body, encoding)
    if is_binary(body[:SAMPLE]):
        if encoding := wide_encoding(body[:SAMPLE]):
            text, warnings = decode_leniently(body, encoding)
            return text, [f"no byte order mark: read as {encoding}", *warnings]
        raise Unreadable("it is a binary file and not text")
    if not charset:
        return decode_undeclared(body)
    encoding = codec(charset)
    if encoding and (decoded := decode_as_declared(body, encoding)):
        return decoded
    text, warnings = decode_undeclared(body)
    return text, [wrong_charset_warning(charset), *warnings]


def as_utf8(body: bytes, charset: str) -> tuple[bytes, list[str]]:
    """Return a text as UTF-8 with its mark, when it is in the encoding its server says it is in.

    The mark outweighs what the text then says about itself, as the server's word does in browsers
    (https://encoding.spec.whatwg.org/#decode). Otherwise return it as it is; and warnings.
    """
    if body.startswith(tuple(mark for mark, _ in MARKS)) or is_binary(body[:SAMPLE]):
        return body, []
    encoding = codec(charset)
    if encoding and (decoded := decode_as_declared(body, encoding)):
        return codecs.BOM_UTF8 + decoded[0].encode("utf-8", "replace"), decoded[1]
    return body, [wrong_charset_warning(charset)] if body.strip() else []


def wrong_charset_warning(charset: str) -> str:
    """Return a warning about what a text is said to be in."""
    return f"said to be in {charset[:40]!r}, which it is not, or which is not known here"


def decode_as_declared(body: bytes, encoding: str) -> Decoded | None:
    """Return a text that is said to be in an encoding; None when it is not, nor in UTF-8.

    Where a letter is a byte nearly all bytes are a text, but hardly any are UTF-8 by chance: such
    bytes were saved as UTF-8 by something that left alone what the text says.
    """
    is_utf8 = is_in(body, "utf-8")
    if is_in(body, encoding) and not (is_utf8 and encoding.startswith(BYTEWISE)):
        return body.decode(encoding), []
    if is_utf8:
        return body.decode(), [] if body.isascii() else [f"said to be in {encoding}, and is UTF-8"]
    return decode_nearly(body, "utf-8") or decode_nearly(body, encoding)


def decode_undeclared(body: bytes) -> Decoded:
    """Return a text that does not say what it is in."""
    if ESCAPE.search(body) and is_in(body, ESCAPED):
        return body.decode(ESCAPED), [f"read as {ESCAPED}"]
    if is_in(body, "utf-8"):
        return body.decode(), []
    if decoded := decode_nearly(body, "utf-8"):
        return decoded
    encoding = guess(body)
    if not encoding:
        raise Unreadable("its encoding is not known here; save it as UTF-8")
    text, warnings = decode_leniently(body, encoding)
    return text, [f"not UTF-8: read as {encoding}", *warnings]


def is_in(body: bytes, encoding: str) -> bool:
    """Tell whether every byte is of a text in that encoding."""
    try:
        body.decode(encoding)
    except UnicodeError:
        return False
    return True


def decode_leniently(body: bytes, encoding: str) -> Decoded:
    """Return the text, a few bad bytes replaced. Raises Unreadable when they are too many."""
    if is_in(body, encoding):
        return body.decode(encoding), []
    if decoded := decode_nearly(body, encoding):
        return decoded
    raise Unreadable(f"it is not {encoding}, as it seemed to be; save it as UTF-8")


def decode_nearly(body: bytes, encoding: str) -> Decoded | None:
    """Return the text when only few of its bytes are bad; None when that is not its encoding."""
    text = body.decode(encoding, errors="replace")
    bad = text.count(REPLACEMENT)
    good = len(re.findall(r"[^\0-\x7f]", text)) - bad
    if bad > max(1, FEW_SHARE * good) or bad > ONE * good:
        return None
    places = "1 damaged place" if bad == 1 else f"{bad:,} damaged places"
    return text, [f"{places}: what stood there is no {encoding}"]


def is_binary(sample: bytes) -> bool:
    """Tell a picture or an archive from text by the control characters in it."""
    return b"\0" in sample or len(sample.translate(None, CONTROL)) < 0.98 * len(sample)


def wide_encoding(sample: bytes) -> str:
    """Return the form of UTF-16 or UTF-32 in which the bytes are a text; nothing when in none."""
    for encoding in WIDE:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(sample)
        except UnicodeDecodeError:
            continue
        senseless = sum(
            category(sign) in SENSELESS_CATEGORIES and not sign.isspace() for sign in text
        )
        # A text has spaces, or ends of lines; random bytes that are all letters have none.
        if text and not senseless and re.search(r"[ \n\u3000-\u3002]", text):
            return encoding
    return ""


# A page says so near its beginning, as it would be too late further down.
HEAD = 4096
# What stands for something wider in practice: the windows code page for the standard it extends
# (https://encoding.spec.whatwg.org/#names-and-labels), by the codec's name.
WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "iso2022_jp": "iso2022_jp_ext",
}
WIDTH = re.compile(r"utf-(?:16|32)")


def declared_charset(html: bytes) -> str:
    """Return what a page's XML declaration or meta element says; nothing when they don't."""
    head = html[:HEAD]
    return EncodingDetector.find_declared_encoding(head, True, True) or ""


def codec(label: str) -> str:
    """Return the codec for a label; nothing when Python has none.

    What calls itself UTF-16 where it was read byte by byte is UTF-8, as in browsers.
    """
    name = label.strip().lower()
    for spelling in (name, python_label(name)):
        try:
            b"\0\0\0\0".decode(spelling)
        except (LookupError, ValueError):
            continue
        name_of_codec = codecs.lookup(spelling).name
        return "utf-8" if WIDTH.match(name_of_codec) else WIDER.get(name_of_codec, name_of_codec)
    return ""


def python_label(label: str) -> str:
    """Return a label without what browsers know and Python does not."""
    label = re.sub(r"^x-|-[ei]$", "", label)
    return re.sub(r"^(?:windows|dos)-", "cp", label).replace("cp31j", "cp932")


WESTERN = ("de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "ca", "af", "et", "sq", "en")
CENTRAL = ("pl", "cs", "sk", "hu", "ro", "sl", "hr", "sq", "de")
BALTIC = ("lt", "lv", "et")
CYRILLIC = ("ru", "uk", "bg", "mk")
# The languages written in each, as langdetect names them; of encodings in which the bytes read the
# same the first is taken.
LATIN: Mapping[str, Sequence[str]] = {
    "cp1252": WESTERN,
    "cp1250": CENTRAL,
    "cp1254": ("tr",),
    "cp1257": BALTIC,
    "cp1258": ("vi",),
    "iso8859-15": WESTERN,
    "iso8859-2": CENTRAL,
    "iso8859-13": BALTIC,
    "cp850": WESTERN,
    "cp852": CENTRAL,
    "mac_roman": WESTERN,
}
CANDIDATES: Mapping[str, Sequence[str]] = {
    **LATIN,
    "cp1251": CYRILLIC,
    "koi8-r": ("ru", "bg"),
    "koi8-u": ("uk",),
    "iso8859-5": CYRILLIC,
    "cp866": CYRILLIC,
    "mac_cyrillic": CYRILLIC,
    "cp1253": ("el",),
    "iso8859-7": ("el",),
    "cp1255": ("he",),
    "iso8859-8": ("he",),
    "cp1256": ("ar", "fa", "ur"),
    "iso8859-6": ("ar",),
    "cp874": ("th",),
}
EASTERN = ["cp932", "euc_jp", "gb18030", "big5hkscs", "cp949"]
HANGUL, HAN = re.compile(r"[\uac00-\ud7af]"), re.compile(r"[\u3400-\u9fff]")
HANGUL_PER_HAN = 4
COMMONEST = "cp1252"
# Natural logarithms of how much likelier the commonest is before a letter is read.
USUAL, RARE = 2.0, 6.0
RARELY = frozenset({"cp850", "cp852", "cp866", "mac_roman", "mac_cyrillic", "iso8859-5"})
NON_ASCII = re.compile(rb"[\x80-\xff]")
# Bytes beyond ASCII, and bytes of a line: more of them say no more.
EVIDENCE, LINE = 500, 4000
# Natural logarithms of the chances of a letter the language does not put there, of a sign that
# texts use, and of another. Letters of a language come to -9 or more, on the average.
STRANGE, USUAL_SIGN, OTHER_SIGN = -16.0, -8.0, -14.0
UNDEFINED = -24.0  # a byte that the encoding leaves open
SIGNS = frozenset(
    "\u2018\u2019\u201a\u201c\u201d\u201e\u2039\u203a\u2013\u2014\u2026\u2022\u20ac\xa0\xd7«»°§·©®¿¡ºª№±²³½µ£"
)
WITHIN_WORDS = frozenset("\u2019·")
# What a letter loses in a script that the bytes speak against: below the first share of the letters
# those beyond ASCII are seldom anything but Latin, and above the second seldom Latin ("Grüße").
AGAINST, LATIN_SHARE, OTHER_SHARE = -3.0, 0.25, 0.5
FEW = 4  # bytes beyond ASCII: a single word may have as many among its letters
# Below this a byte on the average is in no encoding with a byte a letter: the right ones came to
# -9.4 and more for 22 languages, Chinese, Japanese and Korean texts to -10.2 and less.
SENSELESS = -9.8


def guess(body: bytes) -> str:
    """Return the encoding; nothing when the bytes read like no text in any known here."""
    sample = excerpt(body)
    non_ascii = len(NON_ASCII.findall(sample))
    scores = {encoding: score(sample, encoding) for encoding in CANDIDATES}
    best = max(scores, key=lambda encoding: scores[encoding])
    if scores[best] >= SENSELESS * non_ascii:
        return best
    if share(sample) < LATIN_SHARE:
        return best if REPLACEMENT in body.decode(COMMONEST, errors="replace") else COMMONEST
    matches = from_bytes(body, cp_isolation=EASTERN)
    eastern = next((each.encoding for each in matches if is_eastern(str(each)[:EVIDENCE])), "")
    if not eastern and share(sample) <= OTHER_SHARE and is_in(body, COMMONEST):
        return COMMONEST
    return eastern


def is_eastern(text: str) -> bool:
    """Tell whether it is written as it is today: Korean has hardly a Chinese sign in it."""
    syllables, signs = len(HANGUL.findall(text)), len(HAN.findall(text))
    return not syllables or syllables > HANGUL_PER_HAN * signs


def excerpt(body: bytes) -> bytes:
    """Return the lines that hold bytes beyond ASCII, until there are enough of these."""
    lines: list[bytes] = []
    count = 0
    for line in body.splitlines():
        if first := NON_ASCII.search(line):
            start = max(0, first.start() - LINE // 10)
            lines.append(line[start : start + LINE])
            count += len(NON_ASCII.findall(lines[-1]))
        if count > EVIDENCE:
            break
    return b" \n ".join(lines)


def share(sample: bytes) -> float:
    """Return how much of the letters lies beyond ASCII."""
    non_ascii = len(NON_ASCII.findall(sample))
    return non_ascii / (non_ascii + len(re.findall(rb"[A-Za-z]", sample)))


def score(sample: bytes, encoding: str) -> float:
    """Return the logarithm of how likely the bytes beyond ASCII are as a text so encoded."""
    text = normalize("NFC", sample.decode(encoding, errors="replace")).lower()
    prior = 0.0 if encoding == COMMONEST else -RARE if encoding in RARELY else -USUAL
    non_ascii = len(NON_ASCII.findall(sample))
    part = share(sample)
    if part > OTHER_SHARE and non_ascii > FEW if encoding in LATIN else part < LATIN_SHARE:
        prior += AGAINST * non_ascii
    return prior + likelihood(f" {text} ", CANDIDATES[encoding])


def likelihood(text: str, languages: Sequence[str]) -> float:
    """Return how likely the characters beyond ASCII are, in the language that has it highest.

    The text begins and ends with a space.
    """
    letters = "".join(map(as_letter, text))
    grams: Counter[str] = Counter()
    signs = 0.0
    for place in (place for place, sign in enumerate(text) if not sign.isascii()):
        if letters[place] == " ":
            signs += sign_likelihood(text[place - 1 : place + 2])
        else:
            grams.update(ngrams(letters, place))
    return signs + max(letters_likelihood(grams, language) for language in languages)


def as_letter(sign: str) -> str:
    """Return a letter as langdetect counts it, and a space for all that is none."""
    sign = NGram.normalize(sign)
    return sign if category(sign)[0] in "LM" and sign not in SIGNS else " "


def ngrams(letters: str, place: int) -> Iterator[str]:
    """Yield the letter, the two pairs and the triple it is in."""
    yield letters[place]
    yield letters[place - 1 : place + 1]
    yield letters[place : place + 2]
    yield letters[place - 1 : place + 2]


def sign_likelihood(around: str) -> float:
    """Return how likely the sign in the middle is between its neighbours."""
    before, sign, after = tuple(around)
    if sign == REPLACEMENT:
        return UNDEFINED
    is_inside = before.isalpha() and after.isalpha() and sign not in WITHIN_WORDS
    if is_inside or category(sign)[0] == "C":
        return STRANGE
    return USUAL_SIGN if sign in SIGNS else OTHER_SIGN


@cache
def profiles() -> DetectorFactory:
    """Return how often each language uses which letters, pairs and triples of them."""
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory


def letters_likelihood(grams: Mapping[str, int], language: str) -> float:
    """Return how likely the letters are in a language; four of the counted are of each."""
    place = profiles().langlist.index(language)
    known = profiles().word_lang_prob_map
    chances = ((count, known[gram][place] if gram in known else 0) for gram, count in grams.items())
    return sum(n * max(STRANGE, math.log(p) if p else STRANGE) for n, p in chances) / 4
