"""Outline: where the blocks of a Markdown text begin, and which of them are headings."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from knowledge.parsing.normalization import block_tokens, clean_characters, is_heading

# Describing a document and cutting it follow each other, and several threads may be at it.
LATEST = 4


class Start(NamedTuple):
    """Where a heading, paragraph, list item, table or code block begins."""

    line: int  # from 0, of the text as `uniform` leaves it
    kind: str  # as markdown-it calls the token
    heading: str = ""  # what it says; empty for any other block
    level: int = 0  # of a heading, 1 to 6


@lru_cache(maxsize=LATEST)
def block_starts(content: str) -> tuple[Start, ...]:
    """Return where the blocks of a text begin, in order; list items are blocks of their own."""
    return tuple(outer_blocks(clean_characters(content)))


def outer_blocks(content: str) -> Iterator[Start]:
    """Yield the outermost blocks. What a quotation or an item holds is theirs."""
    blocks = block_tokens(content, mdx=False)
    for place, token in enumerate(blocks):
        if token.map is None or token.type.endswith("_list_open"):
            continue
        if is_heading(token) and (heading := blocks[place + 1].content):
            yield Start(token.map[0], token.type, heading, int(token.tag[1]))
        elif token.level == 0 or (token.type == "list_item_open" and token.level == 1):
            yield Start(token.map[0], token.type)


def headings(content: str) -> list[Start]:
    """Return the headings of a Markdown text, in order; what stands in code is none."""
    return [start for start in block_starts(content) if start.heading]


def bodies(content: str) -> Iterator[str]:
    """Yield what stands under each heading, up to the next."""
    lines = clean_characters(content).splitlines(keepends=True)
    blocks = block_starts(content)
    begins = [*(start.line for start in blocks), len(lines)]
    heading_places = [place for place, start in enumerate(blocks) if start.heading]
    for place, next_place in pairwise([*heading_places, len(blocks)]):
        yield "".join(lines[begins[place + 1] : begins[next_place]])


def title(content: str, file_title: str = "") -> str:
    """Return the first heading of level 1, else what the file says, else the first heading."""
    starts = headings(content)
    first = next((each.heading for each in starts if each.level == 1), "")
    return first or file_title or (starts[0].heading if starts else "")
