"""Extraction: without a model, the place in the documents that answers, quoted as it stands there.

What is quoted is a place, not a mosaic: the section that search put first, whole when it is
short, else from where it comes nearest to the question, with all that belongs together. Where
search is not sure of it, the next ones stand below.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from agents.attributes import SourceReference
from agents.documentation.passages import heading
from agents.words import terms, words
from knowledge.embedding import similarities
from knowledge.parsing.outline import block_starts
from knowledge.parsing.tables import rendered
from knowledge.sentences import FENCE, ITEM, QUOTE, split_sentences

# Words of a quotation, by what was wished. Of 384 support questions 150 words from the nearest
# block on hold .72 of the reference answer's words, those with the highest mean .67, the first 150
# of the document .69.
USUAL, BRIEF, DETAILED = 150, 50, 320
# Words of each place and of all, by how many are quoted, and the fewest of a further one.
# Of 141 questions to the pages of four products the first place held the answer for 75 and two for
# 96, in 180 words as in 250. Of the 47 that search was least sure of, one held 11, two held 15 in
# any number of words, three of 100 words held 20, and four 22.
ROOM = {1: (USUAL, USUAL), 2: (USUAL, 180), 3: (100, 300)}
FEWEST_MORE = 30
# Steps are quoted to the end of the procedure, up to so many times the words.
STEPS = 4.0
# Of a long list or table the items that come so close to the best one; of a table at most so many.
CLOSE, MOST_ROWS = 0.75, 12
# What a block's words count beside its vector.
TERMS = 0.25
# A place with fewer words is a heading, or a link to somewhere else.
FEWEST_WORDS = 8
# How a sentence ends that leads to a list or to code; the second is the Chinese colon.
LEADING = (":", "\uff1a")
BOLD_LINE = re.compile(r"^\*\*[^*\n]+\*\*:?$")
NUMBERED = re.compile(r"^\s*(\d{1,3})[.)]\s")
RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:)[^)]*\)")
EXACT = re.compile(r"^(\d+) (?:lines|sentences)$")


@dataclass(frozen=True)
class Block:
    """A paragraph, list item, heading or piece of code as it stands in a passage."""

    text: str
    kind: str  # "prose", "item", "step", "heading" or "code"

    @property
    def size(self) -> int:
        """How many words it has."""
        return len(words(self.text))

    @property
    def number(self) -> int:
        """The number of a step; 0 of anything else."""
        match = NUMBERED.match(self.text)
        return int(match[1]) if match else 0

    @property
    def leads(self) -> bool:
        """Whether it announces what follows."""
        return self.kind == "heading" or self.text.endswith(LEADING)


Nearness = Callable[[Sequence[Block]], NDArray[np.float32]]


@dataclass(frozen=True)
class Quotation:
    """What is quoted of one passage."""

    reference: SourceReference
    runs: list[list[Block]]  # blocks that follow each other in the passage

    @property
    def quotes(self) -> list[str]:
        """The text of each run as it stands in the passage."""
        return ["\n\n".join(together(kind, texts) for kind, texts in alike(r)) for r in self.runs]

    @property
    def size(self) -> int:
        """How many words it has."""
        return sum(_size(run) for run in self.runs)

    def markdown(self, *, as_list: bool = False, is_headed: bool = False) -> str:
        """Return it as it stands in an answer: tables as such, its marker behind it.

        `is_headed`: below its title and section.
        """
        blocks = [block for run in self.runs for block in run]
        parts = []
        for kind, texts in alike(blocks):
            table = rendered(texts) if kind == "item" else None
            parts.append(table or together(kind, texts, as_list=as_list))
        # A link into the documents' own pages leads nowhere from an answer.
        text = RELATIVE_LINK.sub(r"\1", "\n\n".join(parts))
        # Right below a table, Markdown takes a line for one more row of it.
        gap = "\n\n" if text.endswith("|") else "\n" if text.endswith(("```", "~~~")) else " "
        title = f"**{heading(self.reference).replace('*', '')}**\n\n" if is_headed else ""
        return f"{title}{text}{gap}[{self.reference.marker}]"


def alike(blocks: Sequence[Block]) -> Iterator[tuple[str, list[str]]]:
    """Yield (kind, texts) for each stretch of blocks of one kind."""
    for kind, group in groupby(blocks, key=lambda block: block.kind):
        yield kind, [block.text for block in group]


def together(kind: str, texts: Sequence[str], *, as_list: bool = False) -> str:
    """Return blocks of one kind as one text; items stand below each other without gaps."""
    if kind in {"item", "step"}:
        return "\n".join(texts)
    if kind == "prose" and as_list:
        return "\n".join(f"- {each}" for text in texts for each in split_sentences(text))
    return "\n\n".join(texts)


def quotations(
    question: str,
    references: Sequence[SourceReference],
    notes: Sequence[str],
    *,
    places: int = 1,
    is_foreign: bool = False,
) -> list[Quotation]:
    """Return what is quoted of the first passages that say anything; nothing when none does.

    `places`: of how many at most, 1 to 3, where there is room. `notes` are wishes about the length:
    "brief", "detailed", "3 sentences"; who has one of these gets one place. `is_foreign`: the
    passages are in another language than the question.
    """
    exact = next(filter(None, map(EXACT.match, notes)), None)
    wished = BRIEF if "brief" in notes else DETAILED if "detailed" in notes else None
    most, room = (wished, wished) if wished else ROOM[places]
    near = nearness(question, is_foreign)
    found: list[Quotation] = []
    for reference in references:
        blocks = list(blocks_of(reference.text))
        says = sum(block.size for block in blocks if block.kind != "heading") >= FEWEST_WORDS
        if not says or any(reference.text in each.reference.text for each in found):
            continue
        if exact:
            return [Quotation(reference, [[_exactly(blocks, near, int(exact[1]))]])]
        place = Quotation(reference, _fitting(blocks, min(most, room), near))
        if found and place.size > room:
            continue
        found.append(place)
        room -= place.size
        if wished or len(found) == places or room < FEWEST_MORE:
            break
    return found


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the blocks of a passage, in order; a line that is bold as a whole is a heading."""
    lines = text.split("\n")
    starts = block_starts(text)
    ends = [*(start.line for start in starts[1:]), len(lines)]
    for start, end in zip(starts, ends, strict=True):
        block = "\n".join(lines[start.line : end]).strip("\n")
        if block.strip() and start.kind != "hr":
            yield Block(block if start.kind == "code_block" else block.strip(), _kind(block))


def _kind(block: str) -> str:
    first = QUOTE.sub("", block.strip())
    if first.startswith("#") or BOLD_LINE.match(first):
        return "heading"
    if FENCE.match(first):
        return "code"
    if ITEM.match(first):
        return "step" if NUMBERED.match(first) else "item"
    return "prose"


def nearness(question: str, is_foreign: bool) -> Nearness:
    """Return what scores blocks by their vectors and their words, 0 to about 1.25."""
    wanted = set(terms(question))

    def scores(blocks: Sequence[Block]) -> NDArray[np.float32]:
        cosines = similarities(question, [each.text for each in blocks], is_foreign=is_foreign)
        shares = [len(wanted & set(terms(each.text))) / (len(wanted) or 1) for each in blocks]
        return np.asarray(cosines + TERMS * np.array(shares), np.float32)

    return scores


def _exactly(blocks: Sequence[Block], near: Nearness, count: int) -> Block:
    """So many sentences of the block that comes nearest."""
    return _sentences(blocks[_nearest(blocks, near(blocks))], count)


def _fitting(blocks: Sequence[Block], most: int, near: Nearness) -> list[list[Block]]:
    """The blocks to quote, as runs: all of a short place, else the part nearest to the question."""
    if _size(blocks) <= most:
        return [list(blocks)]
    scores = near(blocks)
    best = _nearest(blocks, scores)
    first, last = _members(blocks, best)
    if blocks[best].kind == "item" and _size(blocks[first:last]) > most:
        return _items(blocks, scores, range(first, last))
    end = last if blocks[best].kind == "step" else best + 1
    return [_window(blocks, _beginning(blocks, first, best), end, most)]


def _nearest(blocks: Sequence[Block], scores: NDArray[np.float32]) -> int:
    """The place of the block that comes nearest; what leads to something stands for that."""
    best = int(scores.argmax())
    while blocks[best].leads and best + 1 < len(blocks):
        best += 1
    return best


def _members(blocks: Sequence[Block], place: int) -> tuple[int, int]:
    """Where the list that a block belongs to begins and ends; the block alone when it is none."""
    kind = blocks[place].kind
    if kind == "step":
        return next((each.start, each.stop) for each in _procedures(blocks) if place in each)
    first, end = place, place + 1
    while kind == "item" and first and blocks[first - 1].kind == kind:
        first -= 1
    while kind == "item" and end < len(blocks) and blocks[end].kind == kind:
        end += 1
    return first, end


def _procedures(blocks: Sequence[Block]) -> list[range]:
    """The stretches of steps; code and text between two belong to them where the numbers go on."""
    found: list[range] = []
    for place, block in enumerate(blocks):
        if block.kind != "step":
            continue
        before = found[-1] if found else range(0)
        goes_on = before and (
            before.stop == place or block.number == blocks[before.stop - 1].number + 1
        )
        if goes_on and all(each.kind != "heading" for each in blocks[before.stop : place]):
            found[-1] = range(before.start, place + 1)
        else:
            found.append(range(place, place + 1))
    return found


def _beginning(blocks: Sequence[Block], first: int, best: int) -> int:
    """Where to begin: a list with its first item, anything with what leads to it."""
    begin = first if blocks[best].kind in {"item", "step"} else best
    # Code belongs to the sentence before it.
    while begin and (blocks[begin - 1].leads or blocks[begin].kind == "code"):
        begin -= 1
    return begin


def _items(
    blocks: Sequence[Block], scores: NDArray[np.float32], members: range
) -> list[list[Block]]:
    """The items of a long list that come near, with the sentence that leads to it."""
    floor = CLOSE * max(scores[place] for place in members)
    near = sorted(members, key=lambda place: -scores[place])[:MOST_ROWS]
    places = sorted(place for place in near if scores[place] >= floor)
    if members.start and blocks[members.start - 1].leads:
        places.insert(0, members.start - 1)
    runs = groupby(enumerate(places), key=lambda each: each[1] - each[0])
    return [[blocks[place] for _, place in run] for _, run in runs]


def _window(blocks: Sequence[Block], begin: int, end: int, most: int) -> list[Block]:
    """The blocks from `begin` on within so many words; those up to `end` in any case.

    A paragraph too long for what is left begins there. At the end of the place what stands before
    fills the room. Nothing ends with what only leads to something.
    """
    room = most - _size(blocks[begin:end])
    if room < 0:
        return _cut(blocks[begin:end], most)
    while end < len(blocks) and blocks[end].size <= room:
        room -= blocks[end].size
        end += 1
    # No procedure ends in the middle.
    end = max([end, *(each.stop for each in _procedures(blocks) if end - 1 in each)])
    if end == len(blocks):
        begin = _earlier(blocks, begin, room)
    elif blocks[end].kind == "prose" and (part := _short(blocks[end], room)).size <= room:
        return [*blocks[begin:end], part]
    while end - begin > 1 and blocks[end - 1].leads:
        end -= 1
    return list(blocks[begin:end])


def _earlier(blocks: Sequence[Block], begin: int, room: int) -> int:
    """Where what fits before a place begins; not within a list, and not right after its lead."""
    earlier = begin
    while earlier and blocks[earlier - 1].size <= room:
        earlier -= 1
        room -= blocks[earlier].size
    while earlier < begin and earlier and blocks[earlier - 1].kind != "prose":
        earlier += 1
    return earlier


def _cut(blocks: Sequence[Block], most: int) -> list[Block]:
    """What is too long: steps up to a limit of their own, a paragraph between its sentences."""
    taken: list[Block] = []
    room = most
    for block in blocks:
        limit = room + int((STEPS - 1) * most) * (block.kind in {"step", "code"})
        if block.size > limit and taken and not taken[-1].leads:
            break
        taken.append(block if block.kind != "prose" or block.size <= room else _short(block, room))
        room -= taken[-1].size
    return taken


def _short(block: Block, most: int) -> Block:
    """The first sentences of a paragraph within so many words, one at least."""
    sentences = split_sentences(block.text)
    sizes = np.cumsum([len(words(sentence)) for sentence in sentences])
    return _sentences(block, max(1, int((sizes <= most).sum())))


def _sentences(block: Block, count: int) -> Block:
    """The first sentences of a block; a list item or code is one."""
    if block.kind != "prose":
        return block
    return Block(" ".join(split_sentences(block.text)[:count]), block.kind)


def _size(blocks: Sequence[Block]) -> int:
    return sum(block.size for block in blocks)
