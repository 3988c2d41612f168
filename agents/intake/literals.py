"""Literals: what of a text must survive a translation as it is, and what was lost."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

# ASCII: in scripts without spaces an identifier would take the sentence around it along.
LITERAL = re.compile(
    r"```.*?```|`[^`\n]+`"  # code
    r"|\w+://[!-~]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # addresses
    r"|(?<![\w/])(?:~|\.{1,2})?(?:/[\w.-]+)+|\b[A-Z]:\\[!-~]+|(?<!\S)--?[a-z][\w-]+"  # paths, flags
    r"|\b[\w-]{2,}(?:\.[\w-]{2,})+\b"  # file and host names
    r"|\b\w*_\w+|\b\w*[a-z][A-Z]\w*|\b[A-Za-z]\w*\d\w*",  # identifiers
    re.DOTALL | re.ASCII,
)
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
TRAILING = ".,;:!?)>\"'"
# A corrected text is much like the text; what obeys it is not: four badly misspelt questions came
# to 0.76 and more, five replies to injections to 0.31 and less. Short texts may change a lot.
LIKE = 0.45
SHORTEST = 40
COMPARED = 600  # characters from the beginning


def literals(text: str) -> list[str]:
    """Return the code, addresses and identifiers of `text`, in order."""
    return [found.rstrip(TRAILING) for found in LITERAL.findall(text)]


def lost(text: str, translation: str) -> list[str]:
    """Return the code, addresses, identifiers and numbers of `text` that `translation` lacks.

    Numbers may be written with other separators: only their digits count.
    """
    missing = [each for each in literals(text) if each not in translation]
    kept = set(runs(translation))
    numbers = NUMBER.findall(LITERAL.sub(" ", text))
    missing += [each for each in numbers if not kept.issuperset(runs(each))]
    return list(dict.fromkeys(missing))


def runs(text: str) -> Iterable[str]:
    """Yield the runs of digits in ASCII, whatever script they are written in."""
    for run in re.findall(r"\d+", text):
        yield "".join(str(unicodedata.decimal(digit)) for digit in run)


def rewritten(text: str, corrected: str) -> bool:
    """Whether a text that was only to be corrected came back as another one."""
    if len(text) < SHORTEST:
        return False
    before, after = (" ".join(each.casefold().split())[:COMPARED] for each in (text, corrected))
    return SequenceMatcher(None, before, after, autojunk=False).ratio() < LIKE
