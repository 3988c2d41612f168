"""Blocks: a Markdown text as headings, paragraphs, list items and code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowledge.parsing.normalising import uniform

HEADINGS_KEPT = 3


@dataclass(frozen=True)
class Block:
    """A heading, paragraph, list item or code block with the empty lines after it."""

    text: str
    level: int = 0  # of a heading
    is_code: bool = False


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
