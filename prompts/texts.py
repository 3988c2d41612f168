"""Texts: the prompt files, read, checked and kept; none of their words is in Python."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import frontmatter
import yaml
from django.conf import settings

FOLDER = Path(__file__).parent
SUFFIX = ".md"
NOTE = "_data"  # what every prompt with data says about it
SHAPE = "_shape"  # what a prompt says of its reply to servers that take no schema
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
USER = re.compile(r"^<!-- user -->\n", re.MULTILINE)

# data: written by others, marked so that it is never taken for an instruction. word: one of ours,
# checked before. text: written by who runs Docent.
Kind = Literal["data", "word", "text"]
KINDS: tuple[str, ...] = get_args(Kind)


class PromptError(Exception):
    """A prompt file is missing or wrong."""


@dataclass(frozen=True)
class Text:
    """One prompt file: what the system and the user message say, and the variables they need."""

    name: str
    system: str
    user: str
    kinds: Mapping[str, Kind]
    samples: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Twelve hex digits that change with every word of it, and of what is said beside it."""
        told = [self.system, self.user]
        if "data" in self.kinds.values():
            told.append(note())
        if self.name != SHAPE:
            told.append(text(SHAPE).user)
        return hashlib.sha256("\0".join(told).encode()).hexdigest()[:12]


def parse(name: str, written: str) -> Text:
    """Return the prompt written in a file. Raises PromptError that says what is wrong."""
    try:
        matter = frontmatter.loads(written)
    except yaml.YAMLError as error:
        raise PromptError(f"prompt {name}: its front matter is not YAML: {error}") from error
    kinds: Any = matter.metadata.get("variables") or {}
    samples: Any = matter.metadata.get("samples") or {}
    system, *rest = USER.split(f"{matter.content}\n")
    if len(rest) != 1:
        raise PromptError(f"prompt {name}: needs one line `<!-- user -->` before the user message")
    _check(name, matter.content, system, kinds, samples)
    return Text(name, system.strip(), rest[0].strip(), kinds, samples)


def _check(name: str, content: str, system: str, kinds: Any, samples: Any) -> None:
    """Raise PromptError unless the variables are declared, of a kind, sampled, and in place."""
    if not (name.startswith("_") or content.startswith(f"# {name}\n")):
        raise PromptError(f"prompt {name}: its text must begin with the line `# {name}`")
    used = set(PLACEHOLDER.findall(content))
    if not isinstance(kinds, dict) or used != set(kinds):
        raise PromptError(f"prompt {name}: uses {sorted(used)}, but declares {kinds!r}")
    if wrong := [each for each in kinds.values() if each not in KINDS]:
        raise PromptError(f"prompt {name}: no kind {wrong[0]!r}; allowed: {', '.join(KINDS)}")
    if data := [each for each in PLACEHOLDER.findall(system) if kinds[each] == "data"]:
        raise PromptError(f"prompt {name}: {data[0]} is data and belongs into the user message")
    if not isinstance(samples, dict) or set(samples) != set(kinds):
        raise PromptError(f"prompt {name}: `samples` must hold one value for each variable")


def note() -> str:
    """Return what every prompt with data says about it."""
    return (FOLDER / f"{NOTE}{SUFFIX}").read_text(encoding="utf-8").strip()


_given: dict[str, Text] = {}
_read: dict[str, tuple[float, Text]] = {}


def text(name: str) -> Text:
    """Return the prompt of this name. Raises PromptError.

    A file of the same name in PROMPTS_DIR comes before ours. In development a file that changed
    is read again.
    """
    if name in _given:
        return _given[name]
    if name in _read and not settings.DEBUG:
        return _read[name][1]
    path = _path(name)
    changed = path.stat().st_mtime
    if name not in _read or _read[name][0] != changed:
        _read[name] = (changed, parse(name, path.read_text(encoding="utf-8")))
    return _read[name][1]


def _path(name: str) -> Path:
    own = [Path(settings.PROMPTS_DIR)] if settings.PROMPTS_DIR else []
    for folder in (*own, FOLDER):
        if (path := folder / f"{name}{SUFFIX}").is_file():
            return path
    raise PromptError(f"prompt {name}: there is no file {name}{SUFFIX}")


@contextmanager
def replaced(name: str, written: str) -> Iterator[Text]:
    """Put another text in a prompt's place, in this process, for the time of the block."""
    before = _given.get(name)
    _given[name] = parse(name, written)
    try:
        yield _given[name]
    finally:
        if before is None:
            del _given[name]
        else:
            _given[name] = before
