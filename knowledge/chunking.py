"""Chunking: cuts a document along its structure into parts that fit the embedding model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha1

from markdown_it import MarkdownIt
from markdown_it.token import Token
from semantic_text_splitter import MarkdownSplitter

from knowledge.embedding import WINDOW, count_tokens, tokenizer
from knowledge.enrichment import words
from knowledge.parsing.normalising import uniform

# Shares of the chunk size as the specification gives them for 600 tokens: 120 and 200.
OVERLAP = WINDOW // 5
LOW_INFORMATION = WINDOW // 3
# A path longer than this is cut: the text must have most of the window.
PATH_TOKENS = 64
# What a block that doesn't fit is broken into, before the parts are put together again.
GRAIN = 48
# Counts of separate texts are exact but for words cut between them.
NEAR = 16
HEADINGS_KEPT = 3


@dataclass(frozen=True)
class Part:
    """One chunk before it is stored."""

    section: tuple[str, ...]  # the last three headings above it
    text: str

    @property
    def sha1(self) -> str:
        """The digest of the text."""
        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Block:
    """A heading, paragraph, list item or code block with the empty lines after it."""

    text: str
    level: int = 0  # of a heading
    is_code: bool = False


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


def chunk(title: str, content: str, keywords: Sequence[str]) -> list[Part]:
    """Return the chunks of a Markdown text, in order; none sees more than the model's window."""
    parts = [
        Part(section, text)
        for section, blocks in sections(title, content)
        for text in packed(blocks, Room(title, section))
    ]
    return merged(parts, frozenset(keywords), title)


def sections(title: str, content: str) -> Iterator[tuple[tuple[str, ...], list[Block]]]:
    """Yield (headings above, blocks) for each stretch of text between headings."""
    path: list[tuple[int, str]] = []
    blocks: list[Block] = []
    for block in split_blocks(content):
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


def split_blocks(content: str) -> Iterator[Block]:
    """Yield the blocks of a Markdown text; list items are blocks of their own."""
    content = uniform(content)
    lines = content.splitlines(keepends=True)
    starts = list(block_starts(MarkdownIt("commonmark", {"html": False}).parse(content)))
    ends = [*(begin for begin, _, _ in starts[1:]), len(lines)]
    for (begin, token, heading), end in zip(starts, ends, strict=False):
        if heading:
            yield Block(heading, level=int(token.tag[1]))
        else:
            yield Block("".join(lines[begin:end]), is_code=token.type == "fence")


def block_starts(tokens: Sequence[Token]) -> Iterator[tuple[int, Token, str]]:
    """Yield (first line, token, text of a heading) where a block begins."""
    for place, token in enumerate(tokens):
        if token.map is None or token.type.endswith("_list_open"):
            continue
        if token.level == 0 or (token.type == "list_item_open" and token.level == 1):
            is_heading = token.type == "heading_open"
            yield token.map[0], token, tokens[place + 1].content if is_heading else ""


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


def merged(parts: Sequence[Part], keywords: frozenset[str], title: str) -> list[Part]:
    """Return the parts with those low in information joined to a neighbour.

    One that no neighbour has room for stays as it is; one without any neighbour is dropped.
    """
    kept: list[Part] = []
    waiting: Part | None = None
    for part in parts:
        if waiting is not None:
            joint = replace(joined(waiting, part), section=part.section)
            if fits(joint, title):
                part = joint
            else:
                kept.append(waiting)
            waiting = None
        if not is_low(part, keywords):
            kept.append(part)
        elif kept and not announces(part) and fits(joined(kept[-1], part), title):
            kept[-1] = joined(kept[-1], part)
        else:
            waiting = part
    return [*kept, waiting] if waiting is not None and (kept or announces(waiting)) else kept


def fits(part: Part, title: str) -> bool:
    """Tell whether the part fits into the window under its headings."""
    return Room(title, part.section).fits([part.text])


def joined(first: Part, second: Part) -> Part:
    """Return both as one in the first one's section, the second's heading among the text."""
    heading = f"**{second.section[-1]}**\n\n" if second.section not in {(), first.section} else ""
    return replace(first, text=f"{first.text}\n\n{heading}{second.text}")


def is_low(part: Part, keywords: frozenset[str]) -> bool:
    """Tell whether the part says too little to be found by.

    Under a third of the window, it either holds no keyword of the document or only announces
    what follows.
    """
    if size(part.text) >= LOW_INFORMATION:
        return False
    return announces(part) or not keywords & set(words(part.text))


def announces(part: Part) -> bool:
    """Tell whether the part leads over to the next: "Here are the options:"."""
    return part.text.endswith((":", "\uff1a")) and "\n" not in part.text
