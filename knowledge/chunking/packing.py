"""Packing: blocks into texts that fit the embedding model's window."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from textwrap import dedent

from semantic_text_splitter import MarkdownSplitter

from knowledge.chunking.blocks import Block, inner_blocks
from knowledge.embedding import WINDOW, count_tokens, tokenizer

CHUNK_TOKENS = 600
# The overlap is a fifth: of 600 tokens, 120.
OVERLAP_SHARE = 5
# A path longer than this is cut: the text must have most of the window.
PATH_TOKENS = 64
# What a block that doesn't fit is broken into, before the parts are put together again.
GRAIN = 48
# Counts of separate texts are exact but for words cut between them.
NEAR = 16


def embedded(title: str, section: Sequence[str], text: str) -> str:
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


@lru_cache(maxsize=4096)
def size(text: str) -> int:
    """Return the tokens of the text alone, without [CLS] and [SEP]."""
    return count_tokens(text) - 2


def tokens_of(window: int) -> int:
    """Return the most tokens a chunk may take for a model that sees so many."""
    return min(CHUNK_TOKENS, window)


def packed(blocks: Sequence[Block], room: Room) -> Iterator[tuple[str, int | None]]:
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
                current, page = carried(current, piece, room), block.page
            current.append(piece)
    if "".join(current).strip():
        yield "".join(current).strip(), page


def carried(before: Sequence[str], piece: str, room: Room) -> list[str]:
    """Return the end of one chunk that opens the next: what leads over, and no more."""
    kept: list[str] = []
    for candidate in reversed(before[1:]):
        longer = [candidate, *kept]
        if size("".join(longer)) > room.overlap or not room.fits([*longer, piece]):
            break
        kept = longer
    return kept


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
