"""Degeneration: replies that only repeat, a phrase without end or what they were asked with.

The figures are of 16,903 replies of 21 models to the questions of AlpacaEval, from 1.8 billion
parameters to the largest.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.llm.requests import ECHO, EXCESS, LOOP, Message, Request

# How often a reply on its way is looked at, and how much of its end; in characters.
STRIDE, WINDOW = 100, 6000
# A loop says the same so many times, over so many characters. Of the 16,903 replies 115 are found,
# 58 of them among 1,608 of two of the weakest models, and four among 5,635 of the seven best: a
# loop, a table of 15,000 blanks, a program that is none, and a sudoku.
TIMES, SPAN = 4, 240
# By its last characters a loop is recognised.
TAIL = 40
# Numbers may count on in a loop that has words besides, which a table of numbers has not: 17 of the
# 58.
FEWEST_WORDS = 4
BROKEN = re.compile("[\0\ufffd\ud800-\udfff]")
NUMBER, WORD = re.compile(r"\d+"), re.compile(r"\w+")
# So many words of the instructions in a row are no chance: none of the replies has more than six of
# those of `response`. So many more are no quotation in what may still turn out to be a thought.
ECHOED, ECHOED_AT_LENGTH = 12, 40
# No token is longer on average, in code neither; a model that thinks gets more room for that.
CHARACTERS_A_TOKEN, FEWEST_CHARACTERS, THOUGHTS = 8, 2000, 4
MOST_CHARACTERS = 500_000
# An element of a prompt with its data, as `prompts.prompt` writes it.
ELEMENT = re.compile(r"^<(\w+-[0-9a-f]{8})[^>\n]*>\n(.*?)\n</\1>$", re.DOTALL | re.MULTILINE)


class Material:
    """What a reply may not repeat, the system message and names of elements, and what it may.

    `exempt` are texts in the system message that a reply may repeat, as it may those of the user.
    """

    def __init__(self, messages: Iterable[Message], exempt: Sequence[str] = ()) -> None:
        told = [(each["role"], str(each["content"])) for each in messages]
        system = [text for role, text in told if role == "system"]
        user = [text for role, text in told if role == "user"]
        elements = [match for text in user for match in ELEMENT.finditer(text)]
        self.names = frozenset(match[1] for match in elements)
        self.data = "\n".join([*(match[2] for match in elements), *exempt])
        self._allowed = _spaced("\n".join([*user, *exempt]))
        self._instructions = _spaced("\n".join(system))
        self._has_broken = any("\ufffd" in text for text in user)
        self._tag = re.compile(rf"^</?(?:{'|'.join(self.names) or '$.'})\b", re.MULTILINE)

    def echoed(self, text: str, run: int = ECHOED) -> bool:
        """Whether so many words of the instructions in a row stand in the text."""
        spoken = WORD.findall(text.lower())
        grams = (f" {' '.join(spoken[at : at + run])} " for at in range(len(spoken) - run + 1))
        return any(each in self._instructions and each not in self._allowed for each in grams)

    def is_tagged(self, text: str) -> bool:
        """Whether a line begins with an element of the request."""
        return bool(self._tag.search(text))

    def fault(self, text: str) -> str:
        """Return in words for the model why a text that it wrote is none; empty: it may be one."""
        if any(name in text for name in self.names) or self.echoed(text):
            return "the reply repeats its instructions or the names of elements"
        return broken(text.replace("\ufffd", "") if self._has_broken else text)


@dataclass
class Watch:
    """Tells of a reply on its way when the rest is not worth waiting for. No request: never."""

    request: Request | None = None
    _said: int = 0
    _read: int = 0
    _tail: str = ""
    _said_tail: str = ""
    _since: int = 0

    def __post_init__(self) -> None:
        tokens = self.request.max_tokens if self.request else MOST_CHARACTERS
        self._most = min(max(FEWEST_CHARACTERS, CHARACTERS_A_TOKEN * tokens), MOST_CHARACTERS)
        is_free = self.request and not self.request.schema
        self._material = Material(self.request.messages if self.request and is_free else ())
        self._is_free = bool(is_free)

    def reason(self, read: str, said: str) -> str:
        """Return why to stop reading, or nothing; `said` is what is no thought of what was read."""
        self._read += len(read)
        self._said += len(said)
        self._since += len(read)
        self._tail = (self._tail + read)[-WINDOW:]
        self._said_tail = (self._said_tail + said)[-WINDOW:]
        if self._said > self._most or self._read > min(THOUGHTS * self._most, MOST_CHARACTERS):
            return EXCESS
        if self._since < STRIDE:
            return ""
        self._since = 0
        return self.last()

    def void(self) -> None:
        """Take what was said so far for a thought."""
        self._said, self._said_tail = 0, ""

    def begin_call(self) -> None:
        """Look at what follows by itself: calls of one tool are like each other, and no loop."""
        self._tail = ""

    def last(self) -> str:
        """Return why the end of what was read is not worth its name, or nothing."""
        if self.request is None:
            return ""
        if loops(self._tail, counting=self._is_free):
            return LOOP
        end = self._said_tail[-STRIDE * ECHOED :]
        material = self._material
        if material.is_tagged(end) or material.echoed(end, ECHOED_AT_LENGTH):
            return ECHO
        return ""


def broken(text: str) -> str:
    """Return in words what is broken of a text: null characters, halves of characters, or none."""
    return "the reply holds characters that are no text" if BROKEN.search(text) else ""


def loops(text: str, *, counting: bool = False) -> bool:
    """Whether a text ends with the same over and over, also where only its numbers differ."""
    if _period(text):
        return True
    if not counting:
        return False
    masked = NUMBER.sub("0", text)
    period = _period(masked)
    words = {word for word in WORD.findall(masked[-period:]) if word != "0"} if period else ()
    return len(words) >= FEWEST_WORDS


def _period(text: str) -> int:
    """After how many characters the end of a text comes again, often enough; 0: it does not."""
    before = text.rfind(text[-TAIL:], 0, -1)
    period = len(text) - TAIL - before
    if len(text) <= TAIL or before < 0:
        return 0
    needed = max(SPAN, (TIMES - 1) * period)
    if len(text) < needed + period:
        return 0
    return period if text[-needed:] == text[-needed - period : -period] else 0


def _spaced(text: str) -> str:
    return f" {' '.join(WORD.findall(text.lower()))} "
