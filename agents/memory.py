"""Memory: folds messages that leave the history into the conversation's summary."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agents.attributes import Remark, SummaryUpdate
from agents.contract import View, Writes, llm_agent
from agents.llm.model import Model
from agents.names import Role
from prompts.prompt import Block, Prompt

PROMPT = Prompt("memory", "summary", "leaving", "facts")

# Characters of a summary, of what a model writes of it, and of one message in it.
LONGEST_SUMMARY = 4000
LONGEST_CONDENSED = 2500
LONGEST_LINE = 240
# Characters of one message that a model reads: its beginning, and its end.
READ = (1600, 400)
SPEAKERS = {"user": "The user", "assistant": "The assistant", "staff": "Staff"}
# What a line for one message begins with; a model is asked for prose.
NOTED = "["


class Condensed(BaseModel):
    """What the model makes of the summary and the messages."""

    summary: str = Field(min_length=1, max_length=LONGEST_CONDENSED)


@llm_agent(Role.MEMORY, reads=("summary", "leaving", "facts"), writes=("summary_update",))
def condense(view: View, llm: Model) -> Writes:
    """Let the model write the summary anew, with what the messages add to it."""
    leaving = view.leaving or []
    if not leaving:
        return {}
    condensed = llm.ask(
        PROMPT,
        Condensed,
        summary=view.summary or "",
        leaving=[_block(remark) for remark in leaving],
        facts="\n".join(view.facts or []),
    )
    return _update(condensed.summary.strip(), leaving)


@condense.without_model
def note(view: View) -> Writes:
    """Add a line for each message that leaves; the oldest lines go when there are too many."""
    leaving = view.leaving or []
    if not leaving:
        return {}
    lines = [*(view.summary or "").splitlines(), *_lines(leaving)]
    return _update(bounded(lines), leaving)


def _update(summary: str, leaving: Sequence[Remark]) -> Writes:
    return {"summary_update": SummaryUpdate(summary=summary, until=leaving[-1].time)}


def _block(remark: Remark) -> Block:
    text, (begin, end) = remark.text.strip(), READ
    if len(text) > begin + end:
        text = f"{text[:begin]} … {text[-end:]}"
    return Block("message", text, {"from": remark.role, "time": remark.time[:16]})


def _lines(remarks: Sequence[Remark]) -> list[str]:
    """What each message said, in short."""
    return [
        f"{NOTED}{remark.time[:10]}] {SPEAKERS[remark.role]}: {_shortened(remark.text)}"
        for remark in remarks
    ]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE].rsplit(" ", 1)[0] + " …"


def bounded(lines: Sequence[str]) -> str:
    """The lines as one text, the oldest notes left out when it is too long.

    What a model condensed is kept: it is older than the notes, and holds what matters of it.
    """
    condensed = [line for line in lines if not line.startswith(NOTED)]
    left = LONGEST_SUMMARY - sum(len(line) + 1 for line in condensed)
    kept: list[str] = []
    for line in reversed([line for line in lines if line.startswith(NOTED)]):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([*condensed, *reversed(kept)])
