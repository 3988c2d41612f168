"""Checks: whether every prompt file and what the code declares of it fit together.

Django runs them before a command starts, so that a wrong prompt stops Docent at its start and
never in the midst of a turn.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error

from prompts.prompt import DECLARED, Block, Rendered
from prompts.texts import FOLDER, NOTE, SUFFIX, PromptError, Text, replaced

NAME = re.compile(r"^_?[a-z][a-z_]*\Z")
# Of English prose in the tokenizers of the large providers, roughly.
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class CheckedFile:
    """One prompt file: what it renders to with its samples, or what is wrong with it."""

    name: str
    path: Path
    rendered: Rendered | None = None
    problem: str = ""

    @property
    def tokens(self) -> int:
        """About how many tokens it takes with its samples."""
        messages = self.rendered.messages if self.rendered else ()
        return sum(len(each["content"]) for each in messages) // CHARACTERS_A_TOKEN


def checked_files() -> Iterator[CheckedFile]:
    """Yield every prompt file, those of PROMPTS_DIR first, and every prompt that has none."""
    if settings.PROMPTS_DIR:
        yield from _folder(Path(settings.PROMPTS_DIR))
    ours = list(_folder(FOLDER))
    yield from ours
    for name in sorted(set(DECLARED) - {each.name for each in ours}):
        yield CheckedFile(name, FOLDER / f"{name}{SUFFIX}", problem="there is no such file")


def _folder(folder: Path) -> Iterator[CheckedFile]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield CheckedFile("", folder, problem=f"PROMPTS_DIR cannot be read: {error.strerror}")
        return
    for path in (folder / each for each in names if each.endswith(SUFFIX)):
        # Other files may lie there too: a README, say. `_data` is a part of every prompt.
        if NAME.match(path.stem) and not (folder == FOLDER and path.stem == NOTE):
            yield _file(path)


def _file(path: Path) -> CheckedFile:
    name = path.stem
    if name not in DECLARED:
        known = ", ".join(sorted(DECLARED))
        return CheckedFile(name, path, problem=f"nothing uses a prompt {name}; there are: {known}")
    try:
        with replaced(name, path.read_text(encoding="utf-8")) as text:
            return CheckedFile(name, path, DECLARED[name].render(samples(text)))
    except (PromptError, OSError, UnicodeDecodeError) as error:
        return CheckedFile(name, path, problem=str(error))


def samples(text: Text) -> dict[str, Any]:
    """Return the sample values to render a prompt with; a list is data in several pieces."""
    return {name: _sample(text, name, value) for name, value in text.samples.items()}


def _sample(text: Text, name: str, value: Any) -> Any:
    pieces = value if isinstance(value, list) else [value]
    if others := [each for each in pieces if not isinstance(each, str)]:
        raise PromptError(f"prompt {text.name}: the sample of {name} holds {others[0]!r}, no text")
    return [Block(name, each) for each in pieces] if isinstance(value, list) else value


def prompts_fit(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Return an error for each prompt that is wrong, missing or of no use."""
    return [
        Error(file.problem, obj=file.path, id="prompts.E001")
        for file in checked_files()
        if file.problem
    ]
