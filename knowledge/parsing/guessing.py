"""Guessing: the encoding before Unicode in which bytes read most like some language.

Where a letter is one byte, each candidate is scored by how often its languages put such letters
where they then stand, by the profiles langdetect tells languages by: the naive Bayes of letters,
pairs and triples, asked about one letter beyond ASCII after the other. On short texts, and where
two encodings differ in a few letters, it sees more than charset_normalizer, which tells the
encodings of Chinese, Japanese and Korean apart.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from unicodedata import category, normalize

from charset_normalizer import from_bytes
from langdetect.utils.ngram import NGram

from knowledge.language import profiles
from knowledge.script import SCRIPTS

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
HANGUL_PER_HAN = 4
COMMONEST = "cp1252"
# Natural logarithms of how much likelier the commonest is before a letter is read.
USUAL, RARE = 2.0, 6.0
RARELY = frozenset({"cp850", "cp852", "cp866", "mac_roman", "mac_cyrillic", "iso8859-5"})
BEYOND = re.compile(rb"[\x80-\xff]")
# Bytes beyond ASCII, and bytes of a line: more of them say no more.
EVIDENCE, LINE = 500, 4000
# Natural logarithms of the chances of a letter the language does not put there, of a sign that
# texts use, and of another. Letters of a language come to -9 or more, on the average.
STRANGE, USUAL_SIGN, OTHER_SIGN = -16.0, -8.0, -14.0
UNDEFINED, REPLACED = -24.0, "\ufffd"  # a byte that the encoding leaves open
SIGNS = frozenset(
    "\u2018\u2019\u201a\u201c\u201d\u201e\u2039\u203a\u2013\u2014\u2026\u2022\u20ac\xa0\xd7«»°§·©®¿¡ºª№±²³½µ£"
)
WITHIN_WORDS = frozenset("\u2019·")
# What a letter loses in a script that the bytes speak against: above this share of the letters
# those beyond ASCII are seldom Latin, and below it seldom anything else.
AGAINST, LATIN_SHARE = -3.0, 0.25
FEW = 4  # bytes beyond ASCII: a single word may have as many among its letters
# Below this a byte on the average is in no encoding with a byte a letter: the right ones came to
# -9.4 and more for 22 languages, Chinese, Japanese and Korean texts to -10.2 and less.
SENSELESS = -9.8


def guess(body: bytes) -> str:
    """Return the encoding; nothing when the bytes read like no text in any known here."""
    sample = excerpt(body)
    beyond = len(BEYOND.findall(sample))
    scores = {encoding: score(sample, encoding) for encoding in CANDIDATES}
    best = max(scores, key=lambda encoding: scores[encoding])
    if scores[best] >= SENSELESS * beyond:
        return best
    if share(sample) < LATIN_SHARE:
        return best if REPLACED in body.decode(COMMONEST, errors="replace") else COMMONEST
    matches = from_bytes(body, cp_isolation=EASTERN)
    return next((each.encoding for each in matches if is_eastern(str(each)[:EVIDENCE])), "")


def is_eastern(text: str) -> bool:
    """Tell whether it is written as it is today: Korean has hardly a Chinese sign in it."""
    syllables, signs = (len(SCRIPTS[name].findall(text)) for name in ("hangul", "han"))
    return not syllables or syllables > HANGUL_PER_HAN * signs


def excerpt(body: bytes) -> bytes:
    """Return the lines that hold bytes beyond ASCII, until there are enough of these."""
    lines: list[bytes] = []
    found = 0
    for line in body.splitlines():
        if first := BEYOND.search(line):
            start = max(0, first.start() - LINE // 10)
            lines.append(line[start : start + LINE])
            found += len(BEYOND.findall(lines[-1]))
        if found > EVIDENCE:
            break
    return b" \n ".join(lines)


def share(sample: bytes) -> float:
    """Return how much of the letters lies beyond ASCII."""
    beyond = len(BEYOND.findall(sample))
    return beyond / (beyond + len(re.findall(rb"[A-Za-z]", sample)))


def score(sample: bytes, encoding: str) -> float:
    """Return the logarithm of how likely the bytes beyond ASCII are as a text so encoded."""
    text = normalize("NFC", sample.decode(encoding, errors="replace")).lower()
    prior = 0.0 if encoding == COMMONEST else -RARE if encoding in RARELY else -USUAL
    beyond = len(BEYOND.findall(sample))
    is_latin = share(sample) < LATIN_SHARE
    if is_latin != (encoding in LATIN) and (is_latin or beyond > FEW):
        prior += AGAINST * beyond
    return prior + likeness(f" {text} ", CANDIDATES[encoding])


def likeness(text: str, languages: Sequence[str]) -> float:
    """Return how likely the characters beyond ASCII are, in the language that has it highest.

    The text begins and ends with a space.
    """
    letters = "".join(map(as_letter, text))
    grams: Counter[str] = Counter()
    signs = 0.0
    for place in (place for place, sign in enumerate(text) if not sign.isascii()):
        if letters[place] == " ":
            signs += of_sign(text[place - 1 : place + 2])
        else:
            grams.update(around(letters, place))
    return signs + max(of_letters(grams, language) for language in languages)


def as_letter(sign: str) -> str:
    """Return a letter as langdetect counts it, and a space for all that is none."""
    sign = NGram.normalize(sign)
    return sign if category(sign)[0] in "LM" and sign not in SIGNS else " "


def around(letters: str, place: int) -> Iterator[str]:
    """Yield the letter, the two pairs and the triple it is in."""
    yield letters[place]
    yield letters[place - 1 : place + 1]
    yield letters[place : place + 2]
    yield letters[place - 1 : place + 2]


def of_sign(around: str) -> float:
    """Return how likely the sign in the middle is between its neighbours."""
    before, sign, after = tuple(around)
    if sign == REPLACED:
        return UNDEFINED
    is_inside = before.isalpha() and after.isalpha() and sign not in WITHIN_WORDS
    if is_inside or category(sign)[0] == "C":
        return STRANGE
    return USUAL_SIGN if sign in SIGNS else OTHER_SIGN


def of_letters(grams: Mapping[str, int], language: str) -> float:
    """Return how likely the letters are in a language; four of the counted are of each."""
    place = profiles().langlist.index(language)
    known = profiles().word_lang_prob_map
    chances = ((count, known[gram][place] if gram in known else 0) for gram, count in grams.items())
    return sum(n * max(STRANGE, math.log(p) if p else STRANGE) for n, p in chances) / 4
