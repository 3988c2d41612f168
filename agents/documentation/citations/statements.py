"""Statements: an answer taken apart into what it states, so that one statement can be taken out.

Each carries markers, `[C1]`, which models write in many ways.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from agents.words import content_words, words
from knowledge.sentences import ABBREVIATION, FENCE, end_of_code_block

MARKER = re.compile(r"\[(C\d+)\]")
CODE = r"```.*?(?:```|\Z)|`[^`\n]*`"
# "[C1, C2]", "(C1)", "[c 1]", "[^C1]", "[[C1]](#)", and the brackets of Chinese and Japanese.
_OPEN, _CLOSE = r"[\[(\u3010\uff3b\uff08]", r"[\])\u3011\uff3d\uff09]"
_NUMBER = r"\^?[Cc]\s?\d{1,3}"
_LIST = rf"{_NUMBER}(?:\s*(?:[,;/&\u3001\uff0c]|and|und|et|y|\u0438)?\s*(?:{_NUMBER}|\d{{1,3}}))*"
WRITTEN = re.compile(
    rf"(?P<code>{CODE})|(?P<gap>[ \t]*){_OPEN}{{1,2}}\s*(?P<list>{_LIST})\s*{_CLOSE}{{1,2}}"
    r"(?:\([^)\s]*\))?",
    re.DOTALL,
)

HEADING = re.compile(r"^\s{0,3}#{1,6}\s|^\s*\*\*[^*]+\*\*:?\s*$")
RULE = re.compile(r"^[\s|:*_-]*$")
PREFIX = re.compile(r"^\s*(?:>\s*)*(?:(?:[-*+\u2022]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?")
MARKS = r"(?:\s*\[C\d+\])*+"
ONLY_MARKS = re.compile(r"^\s*(?:\[C\d+\]\s*)+[.]?\s*$")
# A Western sentence ends before white space and something that can begin one; markers behind the
# full stop still belong to it.
END = re.compile(
    rf"[.!?\u2026]+[\"'\u201d\u2019\u00bb)*_]*{MARKS}(?=\s+[\"'\u201c\u2018\u00ab(\[*_`\u00bf\u00a1]*"
    rf"(?:`|[^\W_a-z\u00e0-\u00ff\u0430-\u044f]))|[\u3002\uff01\uff1f]+[\u201d\u300d\u300f\uff09]*{MARKS}"
)
# Where a marker belongs: before what ends a sentence, or closes a row.
CLOSE = re.compile(r"\s*(?:\||[.!?\u2026\u3002\uff01\uff1f]+[\"'\u201d\u2019\u00bb)*_]*)?\s*\Z")
FINISHED = re.compile(rf"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)*_]*{MARKS}\s*\Z")
# Less says nothing that could be true or false.
FEWEST_WORDS = 3
# Of 2,349 questions in twelve languages (XQuAD) and claims (WiCE) none says each of its words more
# than 1.5 times.
REPEATED = 2.5
LEADS = (":", "\uff1a", "?", "\uff1f")
BLOCKS = ("code", "item", "row")  # what a sentence with a colon leads to


@dataclass
class Piece:
    """A part of an answer as it is written. All texts together are the answer."""

    text: str
    line: int
    kind: str = ""  # "prose", "item", "code" or "row"; empty: it states nothing

    @property
    def statement(self) -> str:
        """What it states, without markers and fences."""
        bare = without_markers(self.text)
        if self.kind == "code":
            return "\n".join(line for line in bare.splitlines() if not FENCE.match(line)).strip()
        return bare.strip("| \n") if self.kind == "row" else bare

    @property
    def markers(self) -> list[str]:
        """The markers it carries."""
        return markers(self.text)

    @property
    def claims(self) -> bool:
        """Whether it says something that needs a source."""
        if not self.kind or self.statement.rstrip("*_ ").endswith(LEADS):
            return False
        return self.kind == "code" or len(content_words(self.statement)) >= FEWEST_WORDS

    def cite(self, marker: str) -> None:
        """Give it a marker, instead of those that it carries."""
        for other in self.markers:
            self.text = re.sub(rf"[ \t]*\[{other}\]", "", self.text)
        if self.kind == "code":
            self.text = f"{self.text.rstrip()}\n[{marker}]\n"
        else:
            close = CLOSE.search(self.text)
            end = close.start() if close else len(self.text)
            self.text = f"{self.text[:end]} [{marker}]{self.text[end:]}"


def pieces(answer: str) -> list[Piece]:
    """Take an answer apart; markers that stand alone on a line belong to what is before them.

    Right below a table they get a blank line: Markdown takes what follows a row for another one.
    """
    parts: list[Piece] = []
    lines = answer.splitlines(keepends=True)
    place = 0
    while place < len(lines):
        line, end = lines[place], place + 1
        stating = [each for each in parts if each.kind]
        if fence := FENCE.match(line):
            end = end_of_code_block(lines, place, fence[1])
            parts.append(Piece("".join(lines[place:end]), place, "code"))
        elif ONLY_MARKS.match(line) and stating:
            since = parts[parts.index(stating[-1]) + 1 :]
            gap = "\n" if stating[-1].kind == "row" and not since else ""
            stating[-1].text += "".join(each.text for each in since) + gap + line
            del parts[len(parts) - len(since) :]
        else:
            parts.extend(_of_line(line, place))
        place = end
    for above, below in pairwise(parts):
        # The first row of a table names its columns.
        if above.kind == "row" and below.text.strip() and RULE.match(below.text):
            above.kind = ""
    return parts


def _of_line(line: str, place: int) -> Iterator[Piece]:
    if not line.strip() or HEADING.match(line) or RULE.match(line):
        yield Piece(line, place)
    elif line.strip().startswith("|"):
        yield Piece(line, place, "row")
    else:
        prefix = PREFIX.match(line)
        begin = prefix.end() if prefix else 0
        if begin:
            yield Piece(line[:begin], place)
        listed = "item" if line[:begin].strip(" >") else "prose"
        for sentence in _sentences(line[begin:]):
            yield Piece(sentence, place, listed)


def _sentences(text: str) -> Iterator[str]:
    begin = 0
    for end in END.finditer(text):
        if ABBREVIATION.search(text[begin : end.end()] + " ") or not text[end.end() :].strip():
            continue
        after = len(text) - len(text[end.end() :].lstrip())
        yield text[begin:after]
        begin = after
    yield text[begin:]


def leading_to(all_pieces: list[Piece], dropped: list[Piece]) -> Iterator[Piece]:
    """Yield the sentences that announce what is dropped and nothing else: code, a list, a table."""
    dropped_ids = [id(each) for each in dropped]
    stating = [each for each in all_pieces if each.kind]
    for place, piece in enumerate(stating[:-1], start=1):
        kind = stating[place].kind
        run = [*takewhile(lambda each: each.kind == kind, stating[place:])]  # noqa: B023 used at once
        is_gone = kind in BLOCKS and all(id(each) in dropped_ids for each in run)
        if is_gone and piece.statement.rstrip("*_ ").endswith(LEADS[:2]):
            yield piece


def without(all_pieces: list[Piece], dropped: list[Piece]) -> str:
    """Return the answer without some pieces; what only led to them goes with them."""
    dropped_ids = [id(each) for each in dropped]
    remaining = [each for each in all_pieces if id(each) not in dropped_ids]
    emptied = {each.line for each in dropped} - {each.line for each in remaining if each.kind}
    remaining = [each for each in remaining if each.line not in emptied]
    text = "".join(_ended(each, remaining) for each in remaining)
    return _without_loose_ends(text.split("\n")) if dropped else text


def _ended(piece: Piece, remaining: list[Piece]) -> str:
    """The piece's text; it ends its line when what ended the line was taken out."""
    place = next(number for number, each in enumerate(remaining) if each is piece)
    last = place + 1 == len(remaining) or remaining[place + 1].line != piece.line
    return (
        piece.text.rstrip() + "\n" if last and piece.kind and piece.kind != "code" else piece.text
    )


def _without_loose_ends(lines: list[str]) -> str:
    """Drop headings and lead-ins with nothing below, and gaps that became too wide."""
    remaining: list[str] = []
    for line in reversed(lines):
        below = next((each for each in reversed(remaining) if each.strip()), "")
        leads = line.rstrip().endswith(LEADS[:2]) and not markers(line)
        if (HEADING.match(line) and (not below or HEADING.match(below))) or (leads and not below):
            continue
        remaining.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(reversed(remaining))).strip()


def whole(answer: str) -> str:
    """Return an answer that was cut without the statement that the cut went through."""
    parts = pieces(answer)
    last = next((each for each in reversed(parts) if each.kind), None)
    if last is None or FINISHED.search(last.text):
        return answer.strip()
    return without(parts, [last])


def repeats(text: str) -> bool:
    """Whether a text says the same over and over."""
    said = words(text)
    return len(said) > REPEATED * len(set(said))


def novelty(text: str) -> float:
    """The share of a text's runs of three words that it did not say before, 0 to 1."""
    said = words(text)
    runs = list(zip(said, said[1:], said[2:], strict=False))
    return len(set(runs)) / len(runs) if runs else 1.0


def markers(text: str) -> list[str]:
    """The markers used in `text`, each once, in order: "C1"."""
    return list(dict.fromkeys(MARKER.findall(text)))


def without_markers(text: str) -> str:
    """`text` as it reads without its markers."""
    return re.sub(r"\s+([.,;:!?])", r"\1", re.sub(r"[ \t]*\[C\d+\]", "", text)).strip()


def normalised(text: str) -> str:
    """`text` with every marker written as `[C1]`; code stays as it is."""
    return WRITTEN.sub(_rewritten(lambda marker: True), text)


def known_only(text: str, known: Collection[str]) -> str:
    """`text` with its markers normalised, without those that are not among `known`."""
    return WRITTEN.sub(_rewritten(known.__contains__), text)


def _rewritten(keep: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    def rewrite(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        cited = dict.fromkeys(f"C{int(number)}" for number in re.findall(r"\d+", match["list"]))
        allowed = "".join(f"[{marker}]" for marker in cited if keep(marker))
        return match["gap"] + allowed if allowed else ""

    return rewrite
