"""Chunking: cuts a document along its structure into parts that fit the embedding model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha1

from knowledge.chunking.blocks import Starts, sections
from knowledge.chunking.packing import Room, embedded, heading_path, packed, size, tokens_of
from knowledge.embedding import WINDOW
from knowledge.enrichment import words

__all__ = ["Part", "chunk", "embedded", "heading_path", "merged"]

# Low in information is what takes less than a third: of 600 tokens, 200.
LOW_SHARE = 3


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
        for text, page in packed(blocks, Room(title, section, window))
    ]
    return merged(parts, frozenset(keywords), title, window)


def merged(
    parts: Sequence[Part], keywords: frozenset[str], title: str, window: int = WINDOW
) -> list[Part]:
    """Return the parts with those low in information joined to a neighbour.

    One that no neighbour has room for stays as it is; one without any neighbour is dropped.
    """
    kept: list[Part] = []
    waiting: Part | None = None
    for part in parts:
        if waiting is not None:
            joint = replace(joined(waiting, part), section=part.section, page=part.page)
            if fits(joint, title, window):
                part = joint
            else:
                kept.append(waiting)
            waiting = None
        if not is_low(part, keywords, window):
            kept.append(part)
        elif kept and not announces(part) and fits(joined(kept[-1], part), title, window):
            kept[-1] = joined(kept[-1], part)
        else:
            waiting = part
    return [*kept, waiting] if waiting is not None and (kept or announces(waiting)) else kept


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
