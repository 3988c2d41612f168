"""Prompt: what an agent's file declares to use, checked when Docent starts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.crypto import salted_hmac

from prompts.texts import PLACEHOLDER, PromptError, Text, note, text

NAME = re.compile(r"^[a-z_]+\Z")
ATTRIBUTE = re.compile(r"^[\w .:+-]*\Z")
# Invisible characters that carry instructions past a human reader: tags, zero-width ones, and
# those that turn the direction of writing.
INVISIBLE = re.compile("[\U000e0000-\U000e007f\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff]")
NOTHING = "(none)"
LINE = re.compile(rf"\n.*{PLACEHOLDER.pattern}.*")


@dataclass(frozen=True)
class Block:
    """A piece of data with what Docent itself says about it, e.g. `marker="C1"`."""

    name: str
    text: str
    attributes: dict[str, str] = field(default_factory=dict)
    is_marked: bool = False  # the text is nothing but elements already


def marked(name: str, value: str | Sequence[Block]) -> str:
    """Return the value as elements that mark it as data; `(none)` when there is nothing."""
    blocks = [Block(name, value)] if isinstance(value, str) else list(value)
    return "\n".join(_element(block) for block in blocks if block.text.strip()) or NOTHING


def _element(block: Block) -> str:
    if block.is_marked:
        return block.text
    text = INVISIBLE.sub("", block.text).strip()
    if not NAME.match(block.name):
        raise ValueError(f"{block.name!r} cannot name data")
    for value in block.attributes.values():
        if not ATTRIBUTE.match(value):
            raise ValueError(f"{value!r} was not written by Docent: it belongs into the text")
    tag = f"{block.name}-{salted_hmac('docent.prompts', text).hexdigest()[:8]}"
    attributes = "".join(f' {name}="{value}"' for name, value in block.attributes.items())
    return f"<{tag}{attributes}>\n{text}\n</{tag}>"


DECLARED: dict[str, "Prompt"] = {}


@dataclass(frozen=True)
class Rendered:
    """A prompt filled in: the messages, and the name and hash of the text they came from."""

    name: str
    hash: str
    messages: tuple[dict[str, str], ...]


class Prompt:
    """A prompt file and the variables that its caller provides.

    Declared once, where it is used; declaring it twice with other variables is an error.
    """

    def __init__(self, name: str, *variables: str) -> None:
        self.name = name
        self.variables = frozenset(variables)
        before = DECLARED.setdefault(name, self)
        if before.variables != self.variables:
            raise PromptError(f"prompt {name} is declared twice, with other variables")

    def text(self) -> Text:
        """Return the file's text. Raises PromptError when it needs other variables."""
        template = text(self.name)
        if wrong := self.variables ^ set(template.kinds):
            raise PromptError(
                f"prompt {self.name}: file and code differ in: {', '.join(sorted(wrong))}"
            )
        return template

    def render(self, values: Mapping[str, Any]) -> Rendered:
        """Return the messages with every variable filled in.

        Data may be a string or a sequence of `Block`; it is marked as data whatever it says. Words
        and texts are strings. Raises PromptError for a variable too many or too few.
        """
        template = self.text()
        if wrong := self.variables ^ set(values):
            raise PromptError(f"prompt {self.name}: given and needed differ in: {sorted(wrong)}")
        words = {name: _filled(name, template, value) for name, value in values.items()}

        def fill(part: str) -> str:
            part = LINE.sub(lambda match: match[0] if words[match[1]] else "", part)
            return PLACEHOLDER.sub(lambda match: words[match[1]], part)

        system = fill(template.system)
        if "data" in template.kinds.values():
            system += f"\n\n{note()}"
        messages = (
            {"role": "system", "content": system},
            {"role": "user", "content": fill(template.user)},
        )
        return Rendered(template.name, template.hash, messages)


def _filled(name: str, template: Text, value: Any) -> str:
    if template.kinds[name] == "data":
        return marked(name, value)
    if not isinstance(value, str):
        raise PromptError(f"prompt {template.name}: {name} must be a string, not {type(value)}")
    if template.kinds[name] == "line":
        return " ".join(value.split())
    return value.strip() or NOTHING
