"""Command: answers texts that start with a slash."""

from pydantic import Field

from agents.attributes import MemoryUpdates, Persona
from agents.contract import View, Writes, agent
from agents.names import Role
from agents.words import (
    ENGLISH,
    Phrase,
    capabilities,
    language_asked,
    language_named_in,
    language_noted,
    welcome,
)

# Characters of what was typed that are shown again.
SHOWN = 40


class Typed(View):
    """What the command reads: what was typed."""

    text: str = ""
    language_preference: str | None = None
    assistant: Persona = Field(default_factory=Persona)


@agent(Role.COMMAND, reads=Typed, writes=("response", "memory_updates"))
def obey(view: Typed) -> Writes:
    """Answer `/help`, `/start` and `/language NAME`; to anything else say what exists."""
    assistant = view.assistant
    language = assistant.language_for(view.language_preference or ENGLISH)
    name, _, rest = view.text.strip().partition(" ")
    match name.casefold():
        case "/help":
            return {"response": _help(language, assistant)}
        case "/start":
            return {"response": f"{welcome(language, assistant)} {_help(language, assistant)}"}
        case "/language":
            return _set_language(rest, language, assistant)
    unknown = Phrase.UNKNOWN_COMMAND.in_language(language, command=name[:SHOWN])
    return {"response": f"{unknown} {Phrase.COMMANDS.in_language(language)}"}


def _set_language(request: str, language: str, assistant: Persona) -> Writes:
    chosen = language_named_in(request)
    if chosen is None:
        return {"response": language_asked(language, assistant)}
    return {
        "response": language_noted(chosen, request.strip()[:SHOWN], assistant),
        "memory_updates": MemoryUpdates(language_preference=chosen),
    }


def _help(language: str, assistant: Persona) -> str:
    return f"{capabilities(language, assistant)} {Phrase.COMMANDS.in_language(language)}"
