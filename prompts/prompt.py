"""Prompt: what an agent's file declares to use, checked when Docent starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prompts.marking import Block, marked
from prompts.texts import PLACEHOLDER, PromptError, Text, note, text

DECLARED: dict[str, "Prompt"] = {}
NOTHING = "(none)"


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
        found = text(self.name)
        if wrong := self.variables ^ set(found.kinds):
            raise PromptError(
                f"prompt {self.name}: file and code differ in: {', '.join(sorted(wrong))}"
            )
        return found

    def render(self, values: Mapping[str, Any]) -> Rendered:
        """Return the messages with every variable filled in.

        Data may be a string or a sequence of `Block`; it is marked as data whatever it says. Words
        and texts are strings. Raises PromptError for a variable too many or too few.
        """
        found = self.text()
        if wrong := self.variables ^ set(values):
            raise PromptError(f"prompt {self.name}: given and needed differ in: {sorted(wrong)}")
        filled = {name: _filled(name, found, value) for name, value in values.items()}

        def fill(template: str) -> str:
            return PLACEHOLDER.sub(lambda match: filled[match[1]], template)

        system = fill(found.system)
        if "data" in found.kinds.values():
            system += f"\n\n{note()}"
        messages = (
            {"role": "system", "content": system},
            {"role": "user", "content": fill(found.user)},
        )
        return Rendered(found.name, found.hash, messages)


def _filled(name: str, found: Text, value: Any) -> str:
    if found.kinds[name] == "data":
        return marked(name, value)
    if not isinstance(value, str):
        raise PromptError(f"prompt {found.name}: {name} must be a string, not {type(value)}")
    return value.strip() or NOTHING


__all__ = ["DECLARED", "Block", "Prompt", "Rendered"]
