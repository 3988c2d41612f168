"""Essence: makes the message a question that stands alone, in the conversation's context."""

from functools import cache

from django.conf import settings

from agents.attributes import MemoryUpdates, OpenQuestion, Reason, Remark, Wordings
from agents.contract import View, Writes, llm_agent
from agents.intake import wishes
from agents.intake.essentials import (
    MORE,
    Essentials,
    asked_before,
    farewell,
    numbered,
    written,
)
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
from agents.intake.remarks import day, shown, stamp
from agents.llm.model import Model
from agents.names import Role
from agents.terms import terms
from knowledge.search import search
from prompts.prompt import Prompt

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
