"""Marking: keeps text that others wrote apart from what a model is told to do.

Each piece of data stands in an element whose name ends in a keyed digest of the piece itself: who
wrote the text cannot guess it, so nothing in the text can close the element. The same text always
gets the same name, so that equal requests stay equal.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.crypto import salted_hmac

NAME = re.compile(r"^[a-z_]+\Z")
ATTRIBUTE = re.compile(r"^[\w .:+-]*\Z")
# Invisible characters that carry instructions past a human reader: tags, zero-width ones, and
# those that turn the direction of writing.
INVISIBLE = re.compile("[\U000e0000-\U000e007f\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff]")
NOTHING = "(none)"


@dataclass(frozen=True)
class Block:
    """A piece of data with what Docent itself says about it, e.g. `marker="C1"`."""

    name: str
    text: str
    attributes: dict[str, str] = field(default_factory=dict)


def marked(name: str, value: str | Sequence[Block]) -> str:
    """Return the value as elements that mark it as data; `(none)` when there is nothing."""
    blocks = [Block(name, value)] if isinstance(value, str) else list(value)
    return "\n".join(_element(block) for block in blocks if block.text.strip()) or NOTHING


def _element(block: Block) -> str:
    text = INVISIBLE.sub("", block.text).strip()
    if not NAME.match(block.name):
        raise ValueError(f"{block.name!r} cannot name data")
    for value in block.attributes.values():
        if not ATTRIBUTE.match(value):
            raise ValueError(f"{value!r} was not written by Docent: it belongs into the text")
    tag = f"{block.name}-{salted_hmac('docent.prompts', text).hexdigest()[:8]}"
    said = "".join(f' {name}="{value}"' for name, value in block.attributes.items())
    return f"<{tag}{said}>\n{text}\n</{tag}>"
