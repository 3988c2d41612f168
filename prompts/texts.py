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
# checked before. text: written by who runs Docent. line: the same on one line, which goes where
# nothing is said.
Kind = Literal["data", "word", "text", "line"]
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
        parts = [self.system, self.user]
        if "data" in self.kinds.values():
            parts.append(note())
        if self.name != SHAPE:
            parts.append(text(SHAPE).user)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def parse(name: str, source: str) -> Text:
    """Return the prompt written in a file. Raises PromptError that says what is wrong."""
    try:
        document = frontmatter.loads(source)
    except yaml.YAMLError as error:
        raise PromptError(f"prompt {name}: its front matter is not YAML: {error}") from error
    kinds: Any = document.metadata.get("variables") or {}
    samples: Any = document.metadata.get("samples") or {}
    system, *rest = USER.split(f"{document.content}\n")
    if len(rest) != 1:
        raise PromptError(f"prompt {name}: needs one line `<!-- user -->` before the user message")
    _check(name, document.content, system, kinds, samples)
    return Text(name, system.strip(), rest[0].strip(), kinds, samples)


def _check(name: str, content: str, system: str, kinds: Any, samples: Any) -> None:
    """Raise PromptError unless the variables are declared, of a kind, sampled, and in place."""
    if not (name.startswith("_") or content.startswith(f"# {name}\n")):
        raise PromptError(f"prompt {name}: its text must begin with the line `# {name}`")
    placeholders = set(PLACEHOLDER.findall(content))
    if not isinstance(kinds, dict) or placeholders != set(kinds):
        raise PromptError(f"prompt {name}: uses {sorted(placeholders)}, but declares {kinds!r}")
    if wrong := [each for each in kinds.values() if each not in KINDS]:
        raise PromptError(f"prompt {name}: no kind {wrong[0]!r}; allowed: {', '.join(KINDS)}")
    if data := [each for each in PLACEHOLDER.findall(system) if kinds[each] == "data"]:
        raise PromptError(f"prompt {name}: {data[0]} is data and belongs into the user message")
    if not isinstance(samples, dict) or set(samples) != set(kinds):
        raise PromptError(f"prompt {name}: `samples` must hold one value for each variable")


def note() -> str:
    """Return what every prompt with data says about it."""
    return (FOLDER / f"{NOTE}{SUFFIX}").read_text(encoding="utf-8").strip()


_replacements: dict[str, Text] = {}
_cache: dict[str, tuple[float, Text]] = {}


def text(name: str) -> Text:
    """Return the prompt of this name. Raises PromptError.

    A file of the same name in PROMPTS_DIR comes before ours. In development a file that changed
    is read again.
    """
    if name in _replacements:
        return _replacements[name]
    if name in _cache and not settings.DEBUG:
        return _cache[name][1]
    path = _path(name)
    changed = path.stat().st_mtime
    if name not in _cache or _cache[name][0] != changed:
        _cache[name] = (changed, parse(name, path.read_text(encoding="utf-8")))
    return _cache[name][1]


def _path(name: str) -> Path:
    own = [Path(settings.PROMPTS_DIR)] if settings.PROMPTS_DIR else []
    for folder in (*own, FOLDER):
        if (path := folder / f"{name}{SUFFIX}").is_file():
            return path
    raise PromptError(f"prompt {name}: there is no file {name}{SUFFIX}")


@contextmanager
def replaced(name: str, source: str) -> Iterator[Text]:
    """Put another text in a prompt's place, in this process, for the time of the block."""
    previous = _replacements.get(name)
    _replacements[name] = parse(name, source)
    try:
        yield _replacements[name]
    finally:
        if previous is None:
            del _replacements[name]
        else:
            _replacements[name] = previous
