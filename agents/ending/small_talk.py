"""Small talk: what is said beside questions, in whatever language, told apart by its letters.

One linear layer over the letters of a message: the embedding model knows English only. Trained by
`assistant/lab/small_talk_weights.py`.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import get_args

from agents.attributes import SmallTalk
from agents.words import literals
from knowledge.trained_layers import buckets, layer

# What the layer tells apart beside questions; a wish is found by what it asks for.
QUESTION = "question"
KINDS: tuple[SmallTalk, ...] = tuple(kind for kind in get_args(SmallTalk) if kind != "wish")
WEIGHTS = Path(__file__).with_name("small_talk.npz")
BUCKETS = 2**15
LETTERS = (1, 2, 3, 4)  # in a run, the border of a word being one
# Longer messages ask or tell something.
LONGEST = 120
# Of the small talk of CLINC150's test part 0.73 to 0.90 of a kind is found; of 6,008 questions of
# Bitext's shops 2 are taken for it, of 198 of IBM's cloud 1, of TechQA and XQuAD none.
SURE = 0.55
SURELY_ASKED = 0.9
PART = re.compile(r"[.,;:!?\n\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]+")
WORD = re.compile(r"[^\W_]+|[?!]")


def features(text: str) -> list[int]:
    """Return the buckets of the text's words, pairs of words and runs of letters, each once."""
    words = WORD.findall(_plain(text))
    runs = [
        word[start : start + size]
        for word in (f"_{word}_" for word in words)
        for size in LETTERS
        for start in range(len(word) - size + 1)
    ]
    bounded = ["^", *words, "$"]
    pairs = [" ".join(pair) for pair in pairwise(bounded)]
    length = f"#{min(len(words), 12)}"
    names = {*runs, *pairs, *(f"={word}" for word in words), length}
    return sorted(set(buckets(names, BUCKETS)))


def _plain(text: str) -> str:
    """The text in lower case, without accents and apostrophes, which many leave out."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in parts if not unicodedata.combining(c) and c not in "'\u2019")


def probabilities(text: str) -> dict[str, float]:
    """Return how likely the text is a question, or of each of the `KINDS`; they sum to 1."""
    return layer(WEIGHTS).probabilities(features(text))


def kind_of(texts: Sequence[str]) -> SmallTalk | None:
    """Return the kind of small talk a message is, by the surest of its wordings; None: it asks.

    Who greets and asks has asked: no part of the message may be a question by itself, and none
    an address, code or a name like one.
    """
    wordings = [text for text in texts if 0 < len(text) <= LONGEST]
    if len(wordings) < len(texts) or any(_asks(text) or literals(text) for text in wordings):
        return None
    shares = [probabilities(text) for text in wordings]
    kinds = ((each[kind], kind) for each in shares for kind in KINDS)
    share, kind = max(kinds, default=(0, None))
    return kind if share >= SURE else None


def _asks(text: str) -> bool:
    """Whether one of several parts of the text is surely a question."""
    parts = [part for part in PART.split(text) if WORD.search(part)]
    return len(parts) > 1 and any(probabilities(part)[QUESTION] >= SURELY_ASKED for part in parts)
