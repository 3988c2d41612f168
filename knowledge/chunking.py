"""Chunking: cuts a document along its structure into parts that fit the embedding model."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha1
from textwrap import dedent
from typing import Literal

from semantic_text_splitter import MarkdownSplitter

from knowledge.enrichment import words
from knowledge.parsing.normalization import block_tokens, clean_characters
from knowledge.parsing.outline import block_starts
from knowledge.tokens import WINDOW, count_tokens, tokenizer

HEADINGS_KEPT = 3
CHUNK_TOKENS = 600
# The overlap is a fifth: of 600 tokens, 120.
OVERLAP_SHARE = 5
# Low in information is what takes less than a third: of 600 tokens, 200.
LOW_SHARE = 3
# A path longer than this is cut: the text must have most of the window.
PATH_TOKENS = 64
# Characters. What is longer is no heading, and would be said again with every chunk under it.
LONGEST_HEADING = 300
# What a block that doesn't fit is broken into, before the parts are put together again.
GRAIN = 48
# Counts of separate texts are exact but for words cut between them.
NEAR = 16
# What each kind of token is called that must not be cut just anywhere.
WHOLE: dict[str, Literal["code", "table"]] = {
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
}

Starts = Sequence[tuple[int, int]]  # as in `Page.starts`


@dataclass(frozen=True)
class Part:
    """One chunk before it is stored."""

    section: tuple[str, ...]  # the last three headings above it
    text: str
    page: int | None = None  # it begins on, where the document has pages

    @property
    def sha1(self) -> str:
        """The digest of the text."""
        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Block:
    """A heading, paragraph, list item, table or code block with the empty lines after it."""

    text: str
    level: int = 0  # of a heading
    kind: Literal["text", "code", "table"] = "text"
    page: int | None = None  # it begins on


class Room:
    """What a section leaves of the window once its headings are in it."""

    def __init__(self, title: str, section: Sequence[str], window: int = WINDOW) -> None:
        self.tokens = tokens_of(window) - count_tokens(heading_path(title, section))
        self.overlap = tokens_of(window) // OVERLAP_SHARE

    def fits(self, texts: Sequence[str]) -> bool:
        """Tell whether the texts fit, put together.

        White space costs nothing, so the sum is what they take, except where a word was cut:
        near the limit they are counted as one.
        """
        total = sum(size(text) for text in texts)
        if self.tokens - NEAR < total <= self.tokens + NEAR:
            total = size("".join(texts))
        return total <= self.tokens


def chunk(
    title: str,
    content: str,
    keywords: Sequence[str],
    *,
    window: int = WINDOW,
    starts: Starts = (),
) -> list[Part]:
    """Return the chunks of a Markdown text, in order.

    `window` is how many tokens the embedding model sees; a chunk takes at most that many under
    its headings, and never more than 600. `starts` are the page's. A chunk is numbered by its
    place, so its neighbours are those with the numbers beside its own.
    """
    parts = [
        Part(section, text, page)
        for section, blocks in sections(title, content, starts)
        for text, page in pack(blocks, Room(title, section, window))
    ]
    return merge_low(parts, frozenset(keywords), title, window)


def merge_low(
    parts: Sequence[Part], keywords: frozenset[str], title: str, window: int = WINDOW
) -> list[Part]:
    """Return the parts with those low in information joined to a neighbour.

    One that no neighbour has room for stays as it is; one without any neighbour is dropped.
    """
    merged: list[Part] = []
    waiting: Part | None = None
    for part in parts:
        if waiting is not None:
            joint = replace(joined(waiting, part), section=part.section, page=part.page)
            if fits(joint, title, window):
                part = joint
            else:
                merged.append(waiting)
            waiting = None
        if not is_low(part, keywords, window):
            merged.append(part)
        elif merged and not announces(part) and fits(joined(merged[-1], part), title, window):
            merged[-1] = joined(merged[-1], part)
        else:
            waiting = part
    return [*merged, waiting] if waiting is not None and (merged or announces(waiting)) else merged


def fits(part: Part, title: str, window: int) -> bool:
    """Tell whether the part fits into the window under its headings."""
    return Room(title, part.section, window).fits([part.text])


def joined(first: Part, second: Part) -> Part:
    """Return both as one in the first one's section, the second's heading among the text."""
    heading = f"**{second.section[-1]}**\n\n" if second.section not in {(), first.section} else ""
    return replace(first, text=f"{first.text}\n\n{heading}{second.text}")


def is_low(part: Part, keywords: frozenset[str], window: int) -> bool:
    """Tell whether the part says too little to be found by.

    Under a third of the chunk size, it either holds no keyword of the document or only announces
    what follows.
    """
    if size(part.text) >= tokens_of(window) // LOW_SHARE:
        return False
    return announces(part) or not keywords & set(words(part.text))


def announces(part: Part) -> bool:
    """Tell whether the part leads over to the next: "Here are the options:"."""
    return part.text.endswith((":", "\uff1a")) and "\n" not in part.text


def pack(blocks: Sequence[Block], room: Room) -> Iterator[tuple[str, int | None]]:
    """Yield (text, page) with texts that fit, as few as possible.

    Where a cut falls, its last words are repeated. The page is that of the first words that are
    not a repetition.
    """
    current: list[str] = []
    page: int | None = None
    for block in blocks:
        for piece in pieces(block, room):
            if not current:
                page = block.page
            elif not room.fits([*current, piece]):
                yield "".join(current).strip(), page
                current, page = overlap(current, piece, room), block.page
            current.append(piece)
    if "".join(current).strip():
        yield "".join(current).strip(), page


def overlap(before: Sequence[str], piece: str, room: Room) -> list[str]:
    """Return the end of one chunk that opens the next: what leads over, and no more."""
    tail: list[str] = []
    for candidate in reversed(before[1:]):
        longer = [candidate, *tail]
        if size("".join(longer)) > room.overlap or not room.fits([*longer, piece]):
            break
        tail = longer
    return tail


def pieces(block: Block, room: Room) -> list[str]:
    """Return the block whole when it fits, else in parts that do."""
    if room.fits([block.text]):
        return [block.text]
    if block.kind == "code":
        return code_pieces(block.text, room)
    if block.kind == "table":
        return table_pieces(block.text, room)
    inside = list(inner_blocks(block.text))
    if len(inside) > 1:
        return [piece for each in inside for piece in pieces(each, room)]
    return splitter().chunks(block.text)


def table_pieces(text: str, room: Room) -> list[str]:
    """Return a long table as several, cut between rows, each with the row of headers."""
    header, line, *rows = text.rstrip().splitlines(keepends=True)
    if not all(room.fits([header, line, row]) for row in rows):
        return splitter().chunks(text)
    groups = [""]
    for row in rows:
        if groups[-1] and not room.fits([header, line, groups[-1], row]):
            groups.append("")
        groups[-1] += row
    return [f"{header}{line}{group.rstrip()}\n\n" for group in groups]


def code_pieces(text: str, room: Room) -> list[str]:
    """Return a long code block as several, cut between lines, each with its fences."""
    opening, *lines = dedent(text).strip("\n").splitlines()
    if not opening.startswith(("```", "~~~")):
        opening, lines = "```", [opening, *lines]
    fence = opening[: len(opening) - len(opening.lstrip("`~"))]
    if lines and lines[-1].strip() == fence:
        del lines[-1]

    def fenced(inside: str) -> str:
        return f"{opening}\n{inside.rstrip()}\n{fence}\n\n"

    groups = [""]
    for line in lines:
        whole = room.fits([fenced(line)])
        for grain in [f"{line}\n"] if whole else [f"{cut}\n" for cut in splitter().chunks(line)]:
            if groups[-1] and not room.fits([fenced(groups[-1] + grain)]):
                groups.append("")
            groups[-1] += grain
    return [fenced(group) for group in groups if group.strip()]


@cache
def splitter() -> MarkdownSplitter:
    """Return what breaks a text at the largest joint that is fine enough; it loses nothing."""
    return MarkdownSplitter.from_huggingface_tokenizer(tokenizer(), GRAIN, trim=False)


def sections(
    title: str, content: str, starts: Starts = ()
) -> Iterator[tuple[tuple[str, ...], list[Block]]]:
    """Yield (headings above, blocks) for each stretch of text between headings."""
    path: list[tuple[int, str]] = []
    blocks: list[Block] = []
    for block in split_blocks(content, starts):
        if not block.level:
            blocks.append(block)
            continue
        yield headings(path, title), blocks
        path = [above for above in path if above[0] < block.level]
        path.append((block.level, block.text))
        blocks = []
    yield headings(path, title), blocks


def headings(path: Sequence[tuple[int, str]], title: str) -> tuple[str, ...]:
    """Return the last three headings, without the title of the document."""
    return tuple(text for _, text in path if text != title)[-HEADINGS_KEPT:]


def split_blocks(content: str, starts: Starts = ()) -> Iterator[Block]:
    """Yield the blocks of a Markdown text; list items are blocks of their own."""
    lines = clean_characters(content).splitlines(keepends=True)
    block_begins = block_starts(content)
    ends = [*(start.line for start in block_begins[1:]), len(lines)]
    for (begin, kind, heading, level), end in zip(block_begins, ends, strict=False):
        page = page_at(begin, starts)
        if heading and len(heading) <= LONGEST_HEADING:
            yield Block(heading, level=level, page=page)
        else:
            yield Block("".join(lines[begin:end]), kind=WHOLE.get(kind, "text"), page=page)


def page_at(line: int, starts: Starts) -> int | None:
    """Return the page that a line is on; None when there are no pages."""
    place = bisect_right(starts, line, key=lambda start: start[0])
    return starts[max(place - 1, 0)][1] if starts else None


def inner_blocks(text: str) -> Iterator[Block]:
    """Yield a list item or a quotation as its code and tables and what stands between them."""
    lines = text.splitlines(keepends=True)
    done = 0
    for token in block_tokens(text, mdx=False):
        if token.map is not None and token.type in WHOLE and token.map[0] >= done:
            begin, end = token.map
            if done < begin:
                yield Block("".join(lines[done:begin]))
            yield Block("".join(lines[begin:end]), kind=WHOLE[token.type])
            done = end
    if done < len(lines):
        yield Block("".join(lines[done:]))


def embedding_text(title: str, section: Sequence[str], text: str) -> str:
    """Return what the embedding model sees of a chunk: where it stands, then what it says."""
    return f"{heading_path(title, section)}\n\n{text}"


def heading_path(title: str, section: Sequence[str]) -> str:
    """Return "Title > Heading > Subheading", shortened when it would take too much room."""
    path = [title, *section]
    while len(path) > 1 and count_tokens(" > ".join(path)) > PATH_TOKENS:
        del path[1]
    heading = " > ".join(path)
    while count_tokens(heading) > PATH_TOKENS:
        heading = heading[: len(heading) * 3 // 4]
    return heading


@lru_cache(maxsize=4096)
def size(text: str) -> int:
    """Return the tokens of the text alone, without [CLS] and [SEP]."""
    return count_tokens(text) - 2


def tokens_of(window: int) -> int:
    """Return the most tokens a chunk may take for a model that sees so many."""
    return min(CHUNK_TOKENS, window)
