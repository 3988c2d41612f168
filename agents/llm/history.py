"""History: the conversation as a model is shown it, every message with its number and time."""

from collections.abc import Sequence
from datetime import UTC, datetime

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


def history_blocks(history: Sequence[Remark]) -> list[Block]:
    """Return one element for each message, so that no message can pretend to be another's."""
    return [
        Block(
            "remark",
            f"{stamp(remark.time)} {remark.text}",
            {"number": str(number), "by": remark.role},
        )
        for number, remark in enumerate(history, start=1)
    ]
