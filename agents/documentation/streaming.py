"""Streaming: what of an answer may be shown while a model still writes it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from agents.attributes import SourceReference
from agents.documentation.citations.links import Addresses, harmless, is_harmless
from agents.documentation.citations.statements import known_only
from agents.documentation.passages import bare_line, list_headings
from agents.documentation.refusal import may_refuse, refusal
from agents.llm.token_stream import TokenStream

# The next thing that can be judged by itself: code, a link or marker, what is in brackets, a tag,
# a word, a line's end. An opening bracket alone is the last resort.
UNIT = re.compile(
    r"[ \t]*(?:`[^`\n]*`|!?\[[^\[\]\n]*\](?:\([^()\n]*\)?)?"
    r"|[(\u3010\uff08\uff3b][^()\n]*[)\u3011\uff09\uff3d]"
    r"|<[^<>\n]*>|[^\s`!\[(<\u3010\uff08\uff3b]+|\n|[ \t]+$|.)"
)
OPENING = "[(<`!\u3010\uff08\uff3b"
# What may be the end of a link, or of what defines one.
ENDING = re.compile(r"[])>`:/\n]")
# As CommonMark has it: what only looks like one hides no link from those who take them out.
FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<more>.*)")


@dataclass
class Stream:
    """Passes an answer on piece by piece, each only when it is sure what it is.

    Held back are words, markers, links and code until they are complete, the beginning of a line
    while it may be a refusal or the heading of a list of sources, and all that follows these two,
    or a link that only the whole makes of its parts.
    """

    tokens: TokenStream
    markers: Collection[str]  # markers that exist
    addresses: Addresses
    shown: str = ""
    _waiting: str = ""
    _gap: str = ""
    _line_begins: bool = True
    _fence: str = ""  # that opened the code at hand
    _closed: bool = False
    _headings: frozenset[str] = field(default_factory=list_headings)

    @classmethod
    def quoting(cls, references: Sequence[SourceReference], tokens: TokenStream) -> "Stream":
        """Return a stream of an answer that may cite these, and name the addresses they hold."""
        texts = (text for reference in references for text in (reference.text, reference.source))
        return cls(tokens, {reference.marker for reference in references}, Addresses(texts))

    def take(self, text: str) -> None:
        """Take a piece as it arrives."""
        self._waiting += text
        while not self._closed and (end := self._sure()):
            unit, self._waiting = self._waiting[:end], self._waiting[end:]
            self._line_begins = unit.endswith("\n")
            self._show(unit)

    def restart(self) -> None:
        """What came so far is void: the answer begins again."""
        self.shown, self._waiting, self._gap = "", "", ""
        self._line_begins, self._fence, self._closed = True, "", False
        self.tokens.withdraw()

    def finish(self, final: str) -> None:
        """Make what was shown the final text."""
        if self.shown and final.startswith(self.shown):
            self.tokens.add(final[len(self.shown) :])
        elif self.shown or self.tokens.has_text:
            self.tokens.replace(final)
        else:
            self.tokens.add(final)
        self.shown = final

    def _show(self, unit: str) -> None:
        if not self._in_code:
            unit = harmless(known_only(unit, self.markers), self.addresses)
        # White space is shown with what follows it: an answer does not begin or end with any.
        if not unit.strip():
            self._gap += unit
            return
        piece = self._gap + unit if self.shown else unit.lstrip()
        if ENDING.search(unit) and not is_harmless(self.shown + piece, self.addresses):
            self._closed = True
            return
        self._gap = ""
        self.shown += piece
        self.tokens.add(piece)

    def _sure(self) -> int:
        """How many of the waiting characters are known for what they are; 0: none yet."""
        line, newline, _ = self._waiting.partition("\n")
        if self._line_begins:
            if fence := FENCE.match(line):
                if not newline:
                    return 0
                if self._passes(fence):
                    return len(line) + 1
            if self._stays_hidden(line, whole=bool(newline)):
                return 0
        if self._in_code:
            return len(line) + 1 if newline else 0
        unit = UNIT.match(self._waiting)
        if unit is None or (unit.end() == len(self._waiting) and unit[0] != "\n"):
            return 0
        opens = unit[0].strip() in OPENING and unit[0].strip()
        return 0 if opens and not newline else unit.end()

    def _passes(self, fence: re.Match[str]) -> bool:
        """Take a line that opens code, or closes it; return False when it does neither."""
        mark, more = fence["mark"], fence["more"].strip()
        if self._fence:
            if not mark.startswith(self._fence) or more:
                return False
            self._fence = ""
            return True
        if mark[0] == "`" and "`" in more:
            return False
        self._fence = mark
        return True

    @property
    def _in_code(self) -> bool:
        return bool(self._fence)

    def _stays_hidden(self, line: str, *, whole: bool) -> bool:
        """Whether the user is not to see a line, or may be not to."""
        if self._in_code:
            return False
        heading, colon, _ = line.replace("\uff1a", ":").partition(":")
        beginning = bare_line(heading)
        if refusal(line) or (beginning in self._headings and (whole or colon)):
            self._closed = True
            return True
        return not whole and (
            may_refuse(beginning) or any(each.startswith(beginning) for each in self._headings)
        )
