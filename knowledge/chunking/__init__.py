"""Chunking: cuts a document along its structure into parts that fit the embedding model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha1

from knowledge.chunking.blocks import sections
from knowledge.chunking.packing import Room, embedded, heading_path, packed, size
from knowledge.embedding import WINDOW
from knowledge.enrichment import words

__all__ = ["Part", "chunk", "embedded", "heading_path", "merged"]

# The share of the chunk size the specification gives for 600 tokens: 200.
LOW_INFORMATION = WINDOW // 3


@dataclass(frozen=True)
class Part:
    """One chunk before it is stored."""

    section: tuple[str, ...]  # the last three headings above it
    text: str

    @property
    def sha1(self) -> str:
        """The digest of the text."""
        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()


def chunk(title: str, content: str, keywords: Sequence[str]) -> list[Part]:
    """Return the chunks of a Markdown text, in order; none sees more than the model's window."""
    parts = [
        Part(section, text)
        for section, blocks in sections(title, content)
        for text in packed(blocks, Room(title, section))
    ]
    return merged(parts, frozenset(keywords), title)


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
