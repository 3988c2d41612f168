"""Memory: folds messages that leave the history into the conversation's summary."""

import re
from collections.abc import Sequence
from itertools import accumulate

from pydantic import BaseModel, Field

from agents.attributes import Remark, SummaryUpdate
from agents.contract import View, Writes, llm_agent
from agents.ending.summary import (
    THOUSANDS,
    bounded,
    condensed,
    note_of,
    particulars,
    sayings,
    settled_lines,
    shortened,
)
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.names import Role
from agents.words import digit_runs
from prompts.prompt import Block, Prompt

PROMPT = Prompt("memory", "summary", "leaving", "facts")

LONGEST_CONDENSED = 2500
# Characters of one message that a model reads: its beginning, what matters between, and its end.
READ = (1600, 400, 400)
# A summary that leaves out more than this share of the names and numbers is no summary.
MOST_LOST = 0.5
# A message with more numbers than this is a listing: what matters of it may be none of them.
FEW = 5
# Messages, and bytes of them, that may wait for a model that can condense them. What is more is
# noted for good: what leaves in one turn is bounded to about twice this, and nothing may queue
# behind it for ever.
MOST_WAITING, WAITING_BYTES = 24, 12_000
# A capital within a sentence: in English a name.
NAME = re.compile(r"(?<=[a-z,;] )(?=[^\W\d_])\w[\w-]+")


class Condensed(BaseModel):
    """What the model makes of the summary and the messages."""

    summary: str = Field(min_length=1, max_length=LONGEST_CONDENSED)


class Leaving(View):
    """What memory reads: the messages that leave the history, and what is known without them."""

    summary: str = ""
    leaving: list[Remark] = []
    facts: list[str] = []


@llm_agent(Role.MEMORY, reads=Leaving, writes=("summary_update",))
def condense(view: Leaving, llm: Model) -> Writes:
    """Let the model write the summary anew, with what the messages add to it.

    Raises ModelFailure also for a summary that forgets what it had to keep.
    """
    leaving = view.leaving
    if not leaving:
        return {}
    lines = settled_lines(view.summary)
    reply = llm.ask(
        PROMPT,
        Condensed,
        summary="\n".join(lines),
        leaving=[_block(remark) for remark in leaving],
        facts="\n".join(view.facts),
    )
    summary = reply.summary.strip()
    _refuse_forgetful(summary, lines, leaving)
    return _update(summary, leaving[-1].time)


@condense.without_model
def note(view: Leaving) -> Writes:
    """Add a line for each message that leaves."""
    leaving = view.leaving
    if not leaving:
        return {}
    lines = [*settled_lines(view.summary), *map(note_of, leaving)]
    return _update(bounded(lines), leaving[-1].time)


@condense.after_failure
def defer(view: Leaving, _: ModelFailure) -> Writes:
    """Note the messages until a model can condense them: they leave again in the next turn."""
    leaving = view.leaving
    first = len(leaving) - _waiting(leaving)
    lines = [
        *settled_lines(view.summary),
        *map(note_of, leaving[:first]),
        *(note_of(remark, waiting=True) for remark in leaving[first:]),
    ]
    return _update(bounded(lines), leaving[first - 1].time if first else None)


def _waiting(leaving: Sequence[Remark]) -> int:
    """How many of the messages may wait, from the last."""
    latest = reversed(leaving[-MOST_WAITING:])
    sizes = accumulate(len(remark.text.encode()) for remark in latest)
    return sum(size <= WAITING_BYTES for size in sizes)


def _update(summary: str, until: str | None) -> Writes:
    return {"summary_update": SummaryUpdate(summary=summary, until=until)}


def _block(remark: Remark) -> Block:
    text, (begin, between, end) = remark.text.strip(), READ
    if len(text) > begin + between + end:
        middle = shortened(text[begin:-end], between)
        text = f"{text[:begin]} … {middle} … {text[-end:]}"
    return Block("message", text, {"from": remark.role, "time": remark.time[:16]})


def _refuse_forgetful(summary: str, lines: Sequence[str], leaving: Sequence[Remark]) -> None:
    """Raise ModelFailure when too little of what was known, or was said now, is in the summary."""
    prose = "\n".join(condensed(lines))
    known_particulars = [*_names(prose), *particulars(prose), *_few(sayings(lines))]
    message_particulars = _few([remark.text for remark in leaving if remark.role != "assistant"])
    text, numbers = summary.casefold(), set(digit_runs(THOUSANDS.sub("", summary)))
    for needed in (set(known_particulars), set(message_particulars)):
        missing = [each for each in needed if each.casefold() not in text and each not in numbers]
        if len(missing) > MOST_LOST * len(needed):
            raise ModelFailure(
                Outcome.MALFORMED,
                f"the summary leaves out {len(missing)} of {len(needed)} names and numbers",
            )


def _names(prose: str) -> list[str]:
    return [name for name in NAME.findall(prose) if name[0].isupper()]


def _few(texts: Sequence[str]) -> list[str]:
    """The particulars of the texts, listings left out."""
    lists = [particulars(text) for text in texts]
    return [each for some in lists if len(some) <= FEW for each in some]
