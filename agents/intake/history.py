"""Remarks: the conversation as a model is shown it, every message with its number and time."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from agents.attributes import Remark
from prompts.prompt import Block


def stamp(time: str) -> str:
    """Return an ISO 8601 time as `[YYYY.MM.DD HH:MM:SS]` in UTC; empty for what is no time."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return ""
    local = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"[{local:%Y.%m.%d %H:%M:%S}]"


def day(time: str) -> str:
    """Return the date of an ISO 8601 time: what of the current time may matter for a reply."""
    return stamp(time)[:11]


def shown(history: Sequence[Remark]) -> list[Block]:
    """Return one element for each message, so that no message can pretend to be another's."""
    return [
        Block("remark", f"{stamp(said.time)} {said.text}", {"number": str(number), "by": said.role})
        for number, said in enumerate(history, start=1)
    ]


Written = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]


def first(texts: list[str], most: int, longest: int) -> list[str]:
    """Return the texts that say something, no more and no longer than this, each once."""
    said = (" ".join(text.split())[:longest] for text in texts)
    return list(dict.fromkeys(text for text in said if text))[:most]
