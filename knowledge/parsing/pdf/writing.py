"""Writing: the blocks of a PDF as Markdown."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from knowledge.parsing.pdf.blocks import BULLET, LEADERS, Block
from knowledge.parsing.pdf.grids import sentences
from knowledge.parsing.pdf.lines import Line

WORD = re.compile(r"\w+(?:-\w+)*")
# Chinese and Japanese have no spaces between words.
UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uff5f]{2}")
# Of a letter in a font for code, beside its size.
LETTER_WIDTH = 0.6


class Writer:
    """Writes blocks; knows a document's words, to tell a hyphen from a division."""

    def __init__(self, lines: Iterable[Line]) -> None:
        found = (WORD.findall(line.text.casefold()) for line in lines)
        self.words = Counter(word for words in found for word in words)

    def pages(self, blocks: Sequence[Block]) -> Iterator[tuple[int, list[str]]]:
        """Yield (number, texts) for each page; a block is on the page it begins on."""
        for page, on_page in groupby(blocks, key=lambda block: block.page):
            texts: list[str] = []
            for is_list, group in groupby(on_page, key=lambda block: block.kind == "item"):
                written = [self.written(block) for block in group]
                texts += ["\n".join(written)] if is_list else written
            yield page, texts

    def written(self, block: Block) -> str:
        """Return one block as Markdown."""
        if block.kind == "row" and len(block.lines) > 1:
            return "\n".join(f"- {each}" for each in sentences(block.lines))
        if block.kind == "code":
            return f"```\n{code(block.lines)}\n```"
        text = LEADERS.sub(" …", self.flowing(block.lines))
        if block.kind == "heading":
            return f"{'#' * block.level} {text}"
        return BULLET.sub("- ", text, count=1) if block.kind == "item" else text

    def flowing(self, lines: Sequence[Line]) -> str:
        """Return lines as one, divided words put together."""
        text = lines[0].text
        for before, line in pairwise(lines):
            if before.is_divided:
                text = self.joined(text, line.text)
            elif re.search(r"\w-$", text) and line.text[0].islower():
                text = self.joined(text[:-1], line.text)
            else:
                text += f"{'' if UNSPACED.fullmatch(text[-1] + line.text[0]) else ' '}{line.text}"
        return text

    def joined(self, before: str, after: str) -> str:
        """Return two halves of a word as one, with a hyphen where it is written so elsewhere."""
        left, right = re.search(r"\w*$", before), re.match(r"\w*", after)
        halves = [half[0].casefold() for half in (left, right) if half]
        has_hyphen = self.words["-".join(halves)] > self.words["".join(halves)]
        return f"{before}{'-' if has_hyphen else ''}{after}"


def code(lines: Sequence[Line]) -> str:
    """Return lines of code, indented as they stand."""
    margin = min(line.left for line in lines)
    return "\n".join(
        " " * round((line.left - margin) / (LETTER_WIDTH * (line.size or 1))) + line.text
        for line in lines
    )
