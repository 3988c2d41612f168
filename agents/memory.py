"""Memory: folds messages that leave the history into the conversation's summary."""

from collections.abc import Sequence

from agents.attributes import Remark, SummaryUpdate
from agents.contract import View, Writes, agent
from agents.names import Role

# Characters of a summary, and of one message in it.
LONGEST_SUMMARY = 3000
LONGEST_LINE = 240
SPEAKERS = {"user": "The user", "assistant": "The assistant", "staff": "Staff"}


def _lines(remarks: Sequence[Remark]) -> list[str]:
    """What each message said, in short."""
    return [
        f"[{remark.time[:10]}] {SPEAKERS[remark.role]}: {_shortened(remark.text)}"
        for remark in remarks
    ]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE].rsplit(" ", 1)[0] + " …"


def bounded(lines: Sequence[str]) -> str:
    """The lines as one text, the oldest left out when it is too long."""
    kept: list[str] = []
    left = LONGEST_SUMMARY
    for line in reversed(lines):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept))


@agent(Role.MEMORY, reads=("summary", "leaving", "facts"), writes=("summary_update",))
def condense(view: View) -> Writes:
    """Add a line for each message that leaves; the oldest lines go when there are too many."""
    leaving = view.leaving or []
    if not leaving:
        return {}
    lines = [*(view.summary or "").splitlines(), *_lines(leaving)]
    return {"summary_update": SummaryUpdate(summary=bounded(lines), until=leaving[-1].time)}
