"""Wrapper: what models put around an answer, a lead-in and a code fence, taken off."""

import re
from dataclasses import dataclass
from functools import cached_property

from agents.words import content_words, words

# A line that only leads to the answer has so many characters at most, and words at least.
LONGEST_LEAD, FEWEST_WORDS = 100, 3
# Words that begin with the same letters are taken for one, whatever their endings.
SAME = 4
COLONS = (":", "\uff1a")
FENCE = re.compile(r"\s*(`{3,}|~{3,})[ \t]*(\w*)[ \t]*\n")
HALF_FENCE = re.compile(r"\s*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[ \t]*\w*[ \t]*)\Z")
MARKDOWN, PLAIN = {"md", "markdown"}, {"", "text", "txt", "plaintext"}
# A line of a text rather than of code: four words, and an end.
SENTENCE = re.compile(r"(?:[^\W\d_]+[^\w\n]+){3,}.*[.!?\u2026\])\u3002\uff01\uff1f]\s*\Z")


@dataclass
class Wrapper:
    """A text on its way, piece by piece, without what is around it.

    `topic` is what it may be about. A first line that leads on, and has no word of the topic, says
    nothing. Of 16,903 replies to the questions of AlpacaEval 2,719 begin with a line that ends with
    a colon; taken off are 46, three of which said something. Four lose a fence; all were asked for
    code in one, which no question about documents does.
    """

    topic: str
    _undecided: str = ""
    _state: str = "leading"  # its first line may lead to it; then "fenced", then "through"

    def without(self, piece: str) -> str:
        """Return as much of the text as is known to be inside, now that this piece is there."""
        self._undecided += piece
        if self._state == "leading":
            line, ended, rest = self._undecided.lstrip().partition("\n")
            if not ended and self._may_lead(line):
                return ""
            if ended and self._leads(line):
                self._undecided = rest
            self._state = "fenced"
        if self._state == "fenced":
            if _may_be_fenced(self._undecided):
                return ""
            self._state = "through"
        return self._rest()

    def rest(self) -> str:
        """Return what was held back until the end."""
        return unfenced(self._rest())

    def _rest(self) -> str:
        text, self._undecided = self._undecided, ""
        return text

    def _leads(self, line: str) -> bool:
        ends = line.rstrip().endswith(COLONS) and len(words(line)) >= FEWEST_WORDS
        return ends and self._may_lead(f"{line} ")

    def _may_lead(self, line: str) -> bool:
        """Whether a line as far as it is there says nothing; its last word may go on."""
        if len(line) > LONGEST_LEAD or not line[:1].isalpha():
            return not line
        said = content_words(line.rpartition(" ")[0])
        return not any(word[:SAME] in self._beginnings for word in said)

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(word[:SAME] for word in words(self.topic))


def unwrapped(text: str, topic: str) -> str:
    """Return a whole text without what is around it."""
    wrapper = Wrapper(topic)
    return wrapper.without(text) + wrapper.rest()


def unfenced(text: str) -> str:
    """Return what stands in a fence of Markdown around a whole text; any other text as it is."""
    if not _may_be_fenced(text) or not (opening := FENCE.match(text)):
        return text
    lines = text[opening.end() :].split("\n")
    end = _closing(opening[1], lines)
    content = lines[:end]
    if opening[2].lower() in MARKDOWN:
        return "\n".join(content)
    spoken = [bool(SENTENCE.search(line)) for line in content if line.strip()]
    return "\n".join(content) if end is not None and 2 * sum(spoken) > len(spoken) else text


def _may_be_fenced(text: str) -> bool:
    """Whether a text as far as it is there may stand in one fence as a whole."""
    opening = FENCE.match(text)
    if not opening:
        return bool(HALF_FENCE.match(text))
    if opening[2].lower() not in MARKDOWN | PLAIN:
        return False
    lines = text[opening.end() :].split("\n")
    end = _closing(opening[1], lines)
    return end is None or not "".join(lines[end + 1 :]).strip()


def _closing(fence: str, lines: list[str]) -> int | None:
    """The line that closes a fence, those inside it left out; None: there is none."""
    is_inside = False
    for number, line in enumerate(lines):
        bare = line.strip()
        if not bare.startswith(fence):
            continue
        if not is_inside and not bare.strip(fence[0]):
            return number
        is_inside = not is_inside
    return None
