"""Fragments: replies that end in the midst of a word, though the server says that they ended."""

import re
from collections.abc import Iterable

from agents.llm.requests import Message
from agents.words import stem

# A marker or link that was begun.
OPEN = re.compile(r"\[[^\W_]{0,4}\Z")
LAST = re.compile(r"[^\W_]+\Z")
# Whole markers, which a model may put behind whatever it ends with.
MARKERS = re.compile(r"(?:\s*\[[^\W_]{1,4}\])+\s*\Z")
WORD = re.compile(r"[^\W_]+")
# What may end without a full stop: a heading, a row, code, and an item where others do too.
BARE = re.compile(r"\s*(?:#|\||```|~~~)")
ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)])\s")
ENDED = re.compile(r"[^\w\s]\s*\Z")
FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


def is_fragment(text: str, messages: Iterable[Message]) -> bool:
    """Whether a text ends in a word, number or marker that has to go on.

    A word is not whole where it stands nowhere else, neither in the request nor before, and is the
    beginning of one that does, other than of its own inflection. Of 11,270 replies of 14 models to
    the questions of AlpacaEval, with those of four others for passages, four end so, one of them
    cut indeed; of 2,817 cut at a random place in a word .56.
    """
    text = MARKERS.sub("", text.rstrip())
    *before, last = text.splitlines() or [""]
    end = LAST.search(last)
    if OPEN.search(last):
        return True
    if not end or BARE.match(last) or len(FENCE.findall(text)) % 2:
        return False
    items = [line for line in before if ITEM.match(line)]
    if ITEM.match(last) and not (items and all(map(ENDED.search, items))):
        return False
    told = "\n".join(str(each["content"]) for each in messages)
    said = text.removesuffix(end[0])
    known = set(WORD.findall(f"{told}\n{said}".lower()))
    word = end[0].lower()
    longer = [each for each in known if each.startswith(word)]
    return word not in known and bool(longer) and stem(word) not in map(stem, longer)
