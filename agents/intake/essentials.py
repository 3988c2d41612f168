"""Essentials: what a model makes of a message, and what of that is written."""

import re
from collections.abc import Sequence
from typing import Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import MemoryUpdates, OpenQuestion, Reason, Remark
from agents.contract import Writes
from agents.intake import wishes
from agents.intake.shapes import Written, first
from agents.languages import NAMES, base
from prompts.prompt import Block

# A question that compares or collects needs more passages than one that asks for a single fact.
MORE = 4
MOST_NOTES, LONGEST_NOTE = 8, 80
MOST_FACTS = 3
LONGEST_TOPIC = 120
LONGEST_MESSAGE = 300
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,4})?\Z")
# What a model writes for the language of whatever message it is.
ANY_LANGUAGE = "same"
ASKS = ("?", "\uff1f")


class Essentials(BaseModel):
    """The message as the model understands it; reasons stand before what follows from them."""

    related: list[int]
    canonical_question: Written
    context_type: Literal["new_topic", "follow_up", "clarification"]
    reply: Literal["none", "search_again", "exit"]
    topic: str
    response_notes: list[str]
    collects: bool
    facts: list[str]
    outdated: list[int]
    language_preference: str
    clarification_message: str
    unclear: Literal[
        "none", "ambiguous_query", "missing_context", "multiple_topics", "vague_request"
    ]


def numbered(facts: Sequence[str]) -> list[Block]:
    """Return the known facts as data, numbered from 1."""
    return [
        Block("fact", fact, {"number": str(number)}) for number, fact in enumerate(facts, start=1)
    ]


def asked_before(open_question: OpenQuestion | None) -> list[Block]:
    """Return the open question and its options as data; empty when none is open."""
    if open_question is None:
        return []
    options = (
        Block("option", option, {"number": str(number)})
        for number, option in enumerate(open_question.options, start=1)
    )
    reason = {"reason": open_question.reason.value}
    return [Block("open_question", open_question.question, reason), *options]


def written(
    found: Essentials,
    *,
    text: str,
    question: str,
    history: Sequence[Remark],
    facts: Sequence[str],
    asked: OpenQuestion | None,
) -> Writes:
    """Return what essence writes; what the model cannot know better is held against the rest.

    `question` is the text in English, `asked` what the user was asked back before.
    """
    waiting = asked is not None
    if found.reply == "exit" and (waiting or not question.rstrip().endswith(ASKS)):
        return farewell(question, waiting=waiting)
    completes = waiting and found.reply == "search_again"
    context = "clarification" if completes else _context(found, history)
    writes: Writes = {
        "canonical_question": found.canonical_question,
        "context_type": context,
        "related_history": _related(found, context, history),
        "response_notes": _notes(found, facts),
        "retrieval_k": settings.SEARCH_RESULTS_LIMIT + MORE * found.collects,
        "memory_updates": _memory(found, facts, text, question),
    }
    if completes:
        writes["clarification_result"] = "search_again"
    # A reply that completes the question settles it; "none of these" leaves it as it was.
    settled = completes and asked and found.canonical_question != asked.question
    if found.unclear != "none" and not settled:
        writes |= {
            "needs_clarification": True,
            "clarification_reason": Reason(found.unclear),
            "clarification_message": found.clarification_message[:LONGEST_MESSAGE],
        }
    return writes


def farewell(question: str, *, waiting: bool) -> Writes:
    """Return what is written when the user leaves, `waiting`: for a reply to a question."""
    return {
        "canonical_question": question,
        "context_type": "clarification" if waiting else "follow_up",
        "clarification_result": "exit",
    }


def _context(found: Essentials, history: Sequence[Remark]) -> str:
    return "follow_up" if history and found.context_type != "new_topic" else "new_topic"


def _related(found: Essentials, context: str, history: Sequence[Remark]) -> list[Remark]:
    numbers = sorted({number for number in found.related if 0 < number <= len(history)})
    return [] if context == "new_topic" else [history[number - 1] for number in numbers]


def _memory(found: Essentials, known: Sequence[str], text: str, english: str) -> MemoryUpdates:
    """What is to be remembered; of two wishes about the same matter the newer one."""
    facts = first(found.facts, MOST_FACTS, wishes.LONGEST_FACT) or wishes.standing(text)
    withdrawn = _numbered(known, found.outdated)
    for said in (*facts, text, english):
        withdrawn += wishes.outdated(said, known)
    return MemoryUpdates(
        facts=facts,
        withdrawn=list(dict.fromkeys(withdrawn)),
        topic=" ".join(found.topic.split())[:LONGEST_TOPIC],
        language_preference=_language(found.language_preference, text, english),
    )


def _numbered(facts: Sequence[str], numbers: Sequence[int]) -> list[str]:
    return [facts[number - 1] for number in numbers if 0 < number <= len(facts)]


def _notes(found: Essentials, facts: Sequence[str]) -> list[str]:
    """The wishes for this answer, and those from before that it does not take back."""
    said = first(found.response_notes, MOST_NOTES, LONGEST_NOTE)
    valid = [fact for number, fact in enumerate(facts, start=1) if number not in found.outdated]
    return wishes.holding(wishes.in_known_words(said), valid)


def _language(code: str, text: str, english: str) -> str | None:
    """The language to answer in from now on, if the message names it: models like to guess one.

    Empty for the language of each message, None for as before.
    """
    code, said = code.strip().casefold(), f"{text} {english}".casefold()
    wished = wishes.answer_language(text)
    if code == ANY_LANGUAGE and wished is None and "language" in said:
        return ""
    if not LANGUAGE.match(code):
        return wished
    names = NAMES.get(base(code), ())
    named = not names or any(name in said for name in names)
    return code if named else wished
