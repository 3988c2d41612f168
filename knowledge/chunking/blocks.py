"""Blocks: a Markdown text as headings, paragraphs, list items, tables and code."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from knowledge.parsing.normalising import tokens, uniform
from knowledge.parsing.outline import block_starts

HEADINGS_KEPT = 3
# What each kind of token is called that must not be cut just anywhere.
WHOLE: dict[str, Literal["code", "table"]] = {
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
}

Starts = Sequence[tuple[int, int]]  # as in `Page.starts`


@dataclass(frozen=True)
class Block:
    """A heading, paragraph, list item, table or code block with the empty lines after it."""

    text: str
    level: int = 0  # of a heading
    kind: Literal["text", "code", "table"] = "text"
    page: int | None = None  # it begins on


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
    lines = uniform(content).splitlines(keepends=True)
    found = block_starts(content)
    ends = [*(start.line for start in found[1:]), len(lines)]
    for (begin, kind, heading, level), end in zip(found, ends, strict=False):
        page = page_at(begin, starts)
        if heading:
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
    for token in tokens(text, mdx=False):
        if token.map is not None and token.type in WHOLE and token.map[0] >= done:
            begin, end = token.map
            if done < begin:
                yield Block("".join(lines[done:begin]))
            yield Block("".join(lines[begin:end]), kind=WHOLE[token.type])
            done = end
    if done < len(lines):
        yield Block("".join(lines[done:]))
