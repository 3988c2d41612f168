"""Assistant files: an assistant as a TOML file, to keep, to review and to carry elsewhere."""

import tomllib
from typing import Any, Literal

import tomli_w
from django.core.exceptions import ValidationError
from pydantic import BaseModel, ConfigDict
from pydantic import ValidationError as ShapeError

from conversations.assistants import Assistant
from conversations.errors import ConversationError
from knowledge.postgres_text import storable

# Far more than an assistant with every field full takes.
MOST_BYTES = 100_000
NEW, CHANGED, UNCHANGED = "new", "changed", "unchanged"


class UnusableFile(ConversationError):
    """The file holds no assistant."""


class Sheet(BaseModel):
    """What a file says of an assistant; what it leaves out, the settings say."""

    model_config = ConfigDict(extra="forbid")

    name: str
    title: str = ""
    domain_name: str = ""
    domain_scope: str = ""
    collections: list[str] = []
    audience: str = ""
    strictness: Literal["low", "medium", "high", ""] = ""
    languages: list[str] = []
    tone: str = ""
    greeting: str = ""
    opening_hours: str = ""
    contact: str = ""
    routes: list[str] = []
    models: dict[str, str] = {}  # last: a table would take what follows it along


def exported(assistant: Assistant) -> str:
    """Return the assistant as TOML, without what it leaves to the settings."""
    values = {name: getattr(assistant, name) for name in Sheet.model_fields}
    return tomli_w.dumps({name: value for name, value in values.items() if value})


def parsed(content: bytes) -> Sheet:
    """Return what a file says. Raises UnusableFile with the name of what is wrong."""
    if len(content) > MOST_BYTES:
        raise UnusableFile(f"The file has more than {MOST_BYTES:,} bytes: it is no assistant.")
    try:
        return Sheet.model_validate(tomllib.loads(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise UnusableFile("The file is not UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise UnusableFile(f"The file is not TOML: {error}.") from error
    except ShapeError as error:
        raise UnusableFile(_said_of_shape(error)) from error


def _said_of_shape(error: ShapeError) -> str:
    """Say of the first value that does not fit where it is and what is allowed."""
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return f"{place}: there is no such field. Allowed: {', '.join(Sheet.model_fields)}."
    if problem["type"] == "missing":
        return f"{place}: it is missing; every assistant has one."
    return f"{place}: {problem['msg']}, not {problem['input']!r:.60}."


def store(sheet: Sheet) -> tuple[Assistant, str]:
    """Store the assistant of that name as the file says; return it, and whether that changed it.

    To be called in a transaction. Raises UnusableFile that names every field that is wrong.
    """
    assistant = Assistant.objects.select_for_update().filter(name=storable(sheet.name)).first()
    outcome = CHANGED if assistant else NEW
    assistant = assistant or Assistant(name=sheet.name)
    said = _normal(sheet)
    if outcome is CHANGED and said == {name: getattr(assistant, name) for name in said}:
        return assistant, UNCHANGED
    for name, value in said.items():
        setattr(assistant, name, value)
    try:
        assistant.full_clean()
    except ValidationError as error:
        problems = [f"{name}: {' '.join(each)}" for name, each in error.message_dict.items()]
        raise UnusableFile(" ".join(problems)) from error
    assistant.save()
    return assistant, outcome


def _normal(sheet: Sheet) -> dict[str, Any]:
    """Return the values as they are stored: texts without space around them, names once each."""
    return {
        name: value.strip()
        if isinstance(value, str)
        else list(dict.fromkeys(value))
        if isinstance(value, list)
        else value
        for name, value in sheet.model_dump().items()
    }
