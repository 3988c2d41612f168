"""Packing: blocks into texts that fit the embedding model's window."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from semantic_text_splitter import MarkdownSplitter

from knowledge.chunking.blocks import Block
from knowledge.embedding import WINDOW, count_tokens, tokenizer

# The share of the chunk size the specification gives for 600 tokens: 120.
OVERLAP = WINDOW // 5
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

    def __init__(self, title: str, section: Sequence[str]) -> None:
        self.tokens = WINDOW - count_tokens(heading_path(title, section))

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


def packed(blocks: Sequence[Block], room: Room) -> Iterator[str]:
    """Yield texts that fit, as few as possible; where a cut falls, its last words are repeated."""
    current: list[str] = []
    for piece in (piece for block in blocks for piece in pieces(block, room)):
        if current and not room.fits([*current, piece]):
            yield "".join(current).strip()
            current = carried(current, piece, room)
        current.append(piece)
    if "".join(current).strip():
        yield "".join(current).strip()


def carried(before: Sequence[str], piece: str, room: Room) -> list[str]:
    """Return the end of one chunk that opens the next: what leads over, and no more."""
    kept: list[str] = []
    for candidate in reversed(before[1:]):
        longer = [candidate, *kept]
        if size("".join(longer)) > OVERLAP or not room.fits([*longer, piece]):
            break
        kept = longer
    return kept


def pieces(block: Block, room: Room) -> list[str]:
    """Return the block whole when it fits, else in parts that do."""
    if room.fits([block.text]):
        return [block.text]
    if block.is_code:
        return code_pieces(block.text, room)
    return splitter().chunks(block.text)


def code_pieces(text: str, room: Room) -> list[str]:
    """Return a long code block as several, cut between lines, each with its fences."""
    opening, *lines = text.strip().splitlines()
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
