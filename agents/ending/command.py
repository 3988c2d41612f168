"""Command: answers texts that start with a slash."""

from agents.attributes import MemoryUpdates
from agents.contract import View, Writes, agent
from agents.names import Role
from agents.words import (
    ENGLISH,
    LOCALES,
    Phrase,
    capabilities,
    language_named_in,
    language_noted,
)

# Characters of what was typed that are shown again.
SHOWN = 40


class Typed(View):
    """What the command reads: what was typed."""

    text: str = ""
    language_preference: str | None = None


@agent(Role.COMMAND, reads=Typed, writes=("response", "memory_updates"))
def obey(view: Typed) -> Writes:
    """Answer `/help`, `/start` and `/language NAME`; to anything else say what exists."""
    language = view.language_preference or ENGLISH
    name, _, rest = view.text.strip().partition(" ")
    match name.casefold():
        case "/help":
            return {"response": _help(language)}
        case "/start":
            return {"response": f"{Phrase.WELCOME.in_language(language)} {_help(language)}"}
        case "/language":
            return _set_language(rest, language)
    unknown = Phrase.UNKNOWN_COMMAND.in_language(language, command=name[:SHOWN])
    return {"response": f"{unknown} {Phrase.COMMANDS.in_language(language)}"}


def _set_language(request: str, language: str) -> Writes:
    chosen = language_named_in(request)
    if chosen is None:
        return {
            "response": Phrase.LANGUAGE_WHICH.in_language(language, examples=", ".join(LOCALES))
        }
    return {
        "response": language_noted(chosen, request.strip()[:SHOWN]),
        "memory_updates": MemoryUpdates(language_preference=chosen),
    }


def _help(language: str) -> str:
    return f"{capabilities(language)} {Phrase.COMMANDS.in_language(language)}"
