"""Changes: what is to be different when a turn is replayed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from agents.errors import AgentError
from agents.names import THINKERS
from knowledge.providers import allowed, parts
from prompts.prompt import DECLARED
from prompts.texts import PromptError, parse


class UnusableChange(AgentError):
    """What is to be changed cannot be."""


@dataclass(frozen=True)
class Changes:
    """Other models by asker, and other prompt files by the name of the prompt."""

    models: Mapping[str, str] = field(default_factory=dict)  # {"response": "model@provider"}
    prompts: Mapping[str, str] = field(default_factory=dict)  # {"response": the file's text}


def changes(models: Sequence[str], prompts: Sequence[str]) -> Changes:
    """Return what ROLE=MODEL and PROMPT=FILE ask for. Raises UnusableChange."""
    return Changes(dict(map(_model, models)), dict(map(_prompt, prompts)))


def _model(said: str) -> tuple[str, str]:
    asker, _, model = said.partition("=")
    if asker not in THINKERS:
        raise UnusableChange(
            f"--model {said!r}: {asker!r} asks no model; these do: {', '.join(THINKERS)}."
        )
    name, provider = parts(model)
    if not name or provider not in settings.PROVIDERS:
        raise UnusableChange(
            f"--model {said!r}: write {asker}=model@provider, with one of these providers: "
            f"{allowed()}."
        )
    return asker, f"{name}@{provider}"


def _prompt(said: str) -> tuple[str, str]:
    name, _, file = said.partition("=")
    if name not in DECLARED:
        raise UnusableChange(
            f"--prompt {said!r}: there is no prompt {name!r}; there are: "
            f"{', '.join(sorted(DECLARED))}."
        )
    try:
        written = Path(file).read_text(encoding="utf-8")
        text = parse(name, written)
    except (OSError, UnicodeDecodeError, PromptError) as error:
        raise UnusableChange(f"--prompt {said!r}: {error}") from error
    if wrong := DECLARED[name].variables ^ set(text.kinds):
        raise UnusableChange(
            f"--prompt {said!r}: the file and Docent differ in the variables: "
            f"{', '.join(sorted(wrong))}."
        )
    return name, written
