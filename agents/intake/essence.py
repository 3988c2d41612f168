"""Essence: makes the message a question that stands alone, in the conversation's context."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import MemoryUpdates, OpenQuestion, Reason, Remark, Wordings
from agents.contract import View, Writes, llm_agent
from agents.intake import wishes
from agents.intake.followups import (
    SURELY,
    Read,
    Reading,
    completed,
    is_vague,
    leaving,
    question_before,
    weighed,
)
from agents.intake.history import Written, day, first, shown, stamp
from agents.llm.model import Model
from agents.names import Role
from agents.words import NAMES, base, terms
from knowledge.search import search
from prompts.prompt import Block, Prompt

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
        "memory_updates": _updates(found, facts, text, question),
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


def _updates(found: Essentials, known: Sequence[str], text: str, english: str) -> MemoryUpdates:
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


PROMPT = Prompt(
    "essence",
    "summary",
    "facts",
    "history",
    "open_clarification",
    "current_time",
    "original",
    "message",
)
RELATED = 4
COLLECTING = frozenset(
    {"all", "compare", "difference", "differences", "every", "overview", "versus"}
)


class Message(View):
    """What essence reads: the message, what was said and is known before it, what it may search."""

    text: str = ""
    text_eng: str = ""
    history: list[Remark] = []
    summary: str = ""
    facts: list[str] = []
    topic: str = ""
    current_time: str = ""
    open_clarification: OpenQuestion | None = None
    collections: list[str] = []
    owner: str | None = None
    user_id: str | None = None


def _wanted(question: str) -> int:
    """How many passages it takes to answer a question."""
    more = not COLLECTING.isdisjoint(question.casefold().split())
    return int(settings.SEARCH_RESULTS_LIMIT + MORE * more)


def _reader(view: Message) -> Read:
    """Search as the search role will: it finds again what was found here."""

    @cache
    def read(question: str) -> Reading:
        found = search(
            question,
            collections=view.collections,
            limit=_wanted(question),
            reuse=f"{view.owner}/{view.user_id}",
        )
        return Reading(question, found)

    return read


def _reformats(text: str, before: str, read: Read) -> bool:
    """Whether the message only asks for the last answer in another form.

    It says how it wants to be answered, and nothing else that the documents speak of.
    """
    rest = wishes.without(text)
    if rest == text:
        return False
    return not terms(rest) or not read(f"{before} {rest}").mentions(rest)


def _memory(view: Message, topic: str) -> MemoryUpdates:
    text = view.text or ""
    return MemoryUpdates(
        facts=wishes.standing(text),
        withdrawn=wishes.outdated(text, view.facts or []),
        topic=topic,
        language_preference=wishes.answer_language(text),
    )


def _understood(view: Message, question: str, read: Read) -> Writes:
    """The canonical question, which is the topic from here on, and its context."""
    before = question_before(view.topic, view.history)
    wordings = None
    if view.open_clarification:
        whole, wordings = completed(question, view.open_clarification, read)
        if whole:
            return {
                "canonical_question": whole,
                "context_type": "clarification",
                "clarification_result": "search_again",
                "memory_updates": _memory(view, whole),
            } | _traced(wordings)
    if view.history and _reformats(question, before, read):
        return {
            "canonical_question": before,
            "context_type": "follow_up",
            "memory_updates": _memory(view, before),
        }
    whole = question
    if view.history and wordings is None:
        whole, wordings = weighed(question, before, read)
    return {
        "canonical_question": whole,
        "context_type": "new_topic" if whole == question else "follow_up",
        "memory_updates": _memory(view, whole),
    } | _traced(wordings)


def _traced(wordings: Wordings | None) -> Writes:
    return {"wordings": wordings} if wordings else {}


@llm_agent(
    Role.ESSENCE,
    reads=Message,
    writes=(
        "canonical_question",
        "context_type",
        "related_history",
        "response_notes",
        "retrieval_k",
        "clarification_result",
        "memory_updates",
        "wordings",
    ),
)
def distil(view: Message, llm: Model) -> Writes:
    """Let the model make the message a question that stands alone.

    A message that is nothing but a goodbye needs no model to be understood.
    """
    text, question = _said(view)
    waiting = view.open_clarification is not None
    if any(leaving(said, asked=waiting) >= SURELY for said in {text, question}):
        return farewell(question, waiting=waiting)
    if not question:
        return resolve(view)
    time = view.current_time or ""
    found = llm.ask(
        PROMPT,
        Essentials,
        alike={"current_time": day(time)},
        summary=view.summary or "",
        facts=numbered(view.facts or []),
        history=shown(view.history or []),
        open_clarification=asked_before(view.open_clarification),
        current_time=stamp(time),
        original="" if text == question else text,
        message=question,
    )
    return written(
        found,
        text=view.text,
        question=view.text_eng or view.text,
        history=view.history,
        facts=view.facts,
        asked=view.open_clarification,
    )


def _said(view: Message) -> tuple[str, str]:
    """What the user wrote, and the same in English."""
    text = (view.text or "").strip()
    return text, (view.text_eng or text).strip()


@distil.without_model
def resolve(view: Message) -> Writes:
    """Recognise a follow-up, a reply to a clarification, a wish and a leave-taking.

    A question that stays open is written as it is, so that search can find what to offer.
    """
    text, question = _said(view)
    waiting = view.open_clarification is not None
    if leaving(question, asked=waiting):
        return farewell(question, waiting=waiting)
    read = _reader(view)
    writes = _understood(view, question, read)
    canonical = writes["canonical_question"]
    related = [] if writes["context_type"] == "new_topic" else (view.history or [])[-RELATED:]
    writes |= {
        "related_history": related,
        "response_notes": wishes.holding(wishes.notes(text), view.facts or []),
        "retrieval_k": _wanted(canonical),
    }
    if is_vague(canonical, read):
        reason = Reason.MISSING_CONTEXT if terms(canonical) else Reason.VAGUE_REQUEST
        writes |= {"needs_clarification": True, "clarification_reason": reason}
    return writes
