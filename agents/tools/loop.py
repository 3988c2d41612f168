"""Loop: a model calls tools until it answers, or until it has called enough of them.

Every round is a call of a model in the journal and rows of what its tools did. When the step is
done again, the same replies and the same results are found, and the loop goes on where it was.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Message, Reply, ToolCall
from agents.models import ToolRun
from agents.tools.tool import TOOLS, Effect, ToolOutcome, as_json, excerpt
from agents.tools.toolbox import LONGEST_ARGUMENTS, at_hand
from agents.words import Phrase
from prompts.prompt import Prompt, marked

ROUNDS = 10
# After so many rounds in a row that brought nothing, the model is told to answer.
FRUITLESS = 3
# Of the calls in one reply, the model hears of so many; it wrote the others in vain.
MOST_HEARD = 32
# What a call comes to that is not refused before.
MADE = frozenset({ToolOutcome.OK, ToolOutcome.EXECUTION, ToolOutcome.TIMEOUT})
ENOUGH = Prompt("_enough", "reason")
# As the chat API wants names and ids, also of tools that do not exist.
FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
AT_LIMIT = "That was the last of your {rounds} rounds with tools."
NOTHING_MORE = "There is nothing more to be had."
SILENT = "Your last reply was empty."
IN_VAIN = "The last {rounds} rounds with tools brought nothing."


@dataclass(frozen=True)
class Answer:
    """What a model answered, and what its tools did for that."""

    text: str
    runs: tuple[ToolRun, ...] = ()
    rounds: int = 0  # in which tools were called
    stopped: str = ""  # why the model was told to answer; empty: it did so by itself

    @property
    def failures(self) -> list[ToolRun]:
        """The last calls of critical tools that were made, where these failed."""
        last = {run.tool: run for run in self.runs if run.outcome in MADE and run.tool in TOOLS}
        return [run for run in last.values() if run.error_id and TOOLS[run.tool].critical]

    def with_failures(self, language: str) -> str:
        """Return the text; with a sentence for the user where a critical tool failed."""
        return "\n\n".join([self.text, *failures_told(self.failures, language)])


def failures_told(failures: Iterable[ToolRun], language: str) -> list[str]:
    """Return what a user is told of tools that failed: an effect elsewhere may have come."""
    ids: dict[Phrase, list[str]] = {}
    for run in failures:
        is_elsewhere = TOOLS[run.tool].effect is Effect.ELSEWHERE
        phrase = Phrase.EFFECT_UNKNOWN if is_elsewhere else Phrase.TOOLS_FAILED
        ids.setdefault(phrase, []).append(run.error_id)
    return [phrase.in_language(language, error_id=", ".join(some)) for phrase, some in ids.items()]


def run(llm: Model, prompt: Prompt, /, *, rounds: int = ROUNDS, **values: Any) -> Answer:
    """Return what the model answers to a prompt after it called the tools of the role at work.

    `values` fill the prompt in. Raises ModelFailure; what tools changed by then is in
    `toolbox.at_hand().effects()`.
    """
    toolbox = at_hand()
    schemas = [tool.schema() for tool in toolbox.tools]
    talk: list[Message] = []
    runs: list[ToolRun] = []
    fruitless, reason, number = 0, "", 0
    while not reason:
        try:
            reply, call = llm.converse(prompt, talk, schemas, **values)
        except ModelFailure as failure:
            if failure.outcome is not Outcome.EMPTY or not runs:
                raise
            # Some fall silent when their tools have said all.
            reason = SILENT
            break
        if not reply.tool_calls:
            return Answer(reply.text.strip(), tuple(runs), number)
        number += 1
        wanted = reply.tool_calls[:MOST_HEARD]
        done = toolbox.call_all(wanted, round_number=number, model_call=call)
        talk += exchange(reply, wanted, done)
        fruitless = 0 if any(_is_news(each, runs) for each in done) else fruitless + 1
        runs += done
        reason = _reason(number, rounds, fruitless, done)
    talk.append(ENOUGH.render({"reason": reason}).messages[1])
    reply, _ = llm.converse(prompt, talk, schemas, may_call=False, **values)
    return Answer(reply.text.strip(), tuple(runs), number, reason)


def _reason(number: int, rounds: int, fruitless: int, done: Sequence[ToolRun]) -> str:
    """Return why the model is to answer after this round; empty: it need not."""
    if fruitless and any(each.gain == ToolRun.Gain.NOTHING_NEW for each in done):
        return NOTHING_MORE
    if fruitless >= FRUITLESS:
        return IN_VAIN.format(rounds=fruitless)
    return AT_LIMIT.format(rounds=rounds) if number >= rounds else ""


def _is_news(run: ToolRun, before: Sequence[ToolRun]) -> bool:
    """Whether a call brought something that none before it had."""
    if run.outcome != ToolOutcome.OK or run.gain != ToolRun.Gain.SOMETHING or run.repeats:
        return False
    known = ((each.tool, each.arguments, each.result) for each in before)
    return (run.tool, run.arguments, run.result) not in known


def exchange(reply: Reply, wanted: Sequence[ToolCall], runs: Sequence[ToolRun]) -> list[Message]:
    """Return a reply and what came of the calls it wanted, as messages for the next round."""
    ids = _ids(wanted)
    calls = [
        {"id": name, "type": "function", "function": _function(each)}
        for name, each in zip(ids, wanted, strict=True)
    ]
    return [
        {"role": "assistant", "content": reply.text or None, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": name, "content": observation(each)}
            for name, each in zip(ids, runs, strict=True)
        ),
    ]


def _ids(wanted: Sequence[ToolCall]) -> list[str]:
    """Return the ids of calls, or others where they are not told apart by them."""
    ids = [FORBIDDEN.sub("", each.id)[:64] for each in wanted]
    return ids if all(ids) and len(set(ids)) == len(ids) else [
        f"call{place:05d}" for place in range(len(ids))
    ]  # fmt: skip


def _function(wanted: ToolCall) -> dict[str, str]:
    """Return what was wanted so that every server takes it: no broken JSON, no odd names."""
    arguments = wanted.arguments if len(wanted.arguments) <= LONGEST_ARGUMENTS else ""
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    name = FORBIDDEN.sub("_", wanted.name)[:64] or "_"
    return {"name": name, "arguments": arguments if is_object else "{}"}


def observation(run: ToolRun) -> str:
    """Return what a model is told of a call: its result marked as data, or what went wrong."""
    if run.outcome != ToolOutcome.OK:
        return excerpt(run.error)
    told = TOOLS[run.tool].told if run.tool in TOOLS else as_json
    before = "Done once already in this turn, not again; it came to: " if run.repeats else ""
    return before + marked("result", told(run.result))
