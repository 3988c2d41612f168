"""Essence: makes the message a question that stands alone, in the conversation's context."""

from collections.abc import Sequence

from django.conf import settings

from agents.attributes import MemoryUpdates, OpenQuestion, Reason, Remark
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
from agents.intake.references import (
    last_question,
    leans_on,
    refers_back,
    topic_of,
    with_topic,
)
from agents.intake.remarks import day, shown, stamp
from agents.intake.replies import answers, leaves, says_goodbye
from agents.intake.vagueness import VAGUE, telling, vagueness
from agents.llm.model import Model
from agents.names import Role
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
    """What essence reads: the message, and what was said and is known before it."""

    text: str = ""
    text_eng: str = ""
    history: list[Remark] = []
    summary: str = ""
    facts: list[str] = []
    topic: str = ""
    current_time: str = ""
    open_clarification: OpenQuestion | None = None


def _reformats(text: str, history: Sequence[Remark]) -> bool:
    """Whether the message only asks for the last answer in another form."""
    asked = [word for word in telling(text) if word not in wishes.FORMING and not word.isdigit()]
    language = wishes.answer_language(text) is not None
    wished = wishes.notes(text) or language or wishes.ABOUT_ANSWER.search(text)
    return bool(history and not asked and wished and set(telling(text)) & wishes.FORMING)


def _memory(view: Message, topic: str) -> MemoryUpdates:
    text = view.text or ""
    return MemoryUpdates(
        facts=wishes.standing(text),
        withdrawn=wishes.outdated(text, view.facts or []),
        topic=topic,
        language_preference=wishes.answer_language(text),
    )


def _understood(view: Message, question: str) -> Writes:
    """The canonical question, its context and the topic from here on."""
    history = view.history or []
    topic = view.topic or topic_of(last_question(history))
    if view.open_clarification and (whole := answers(question, view.open_clarification)):
        return {
            "canonical_question": whole,
            "context_type": "clarification",
            "clarification_result": "search_again",
            "memory_updates": _memory(view, topic_of(whole) or topic),
        }
    if _reformats(question, history):
        again = last_question(history) or topic or question
        return {
            "canonical_question": again,
            "context_type": "follow_up",
            "memory_updates": _memory(view, topic),
        }
    if leans_on(question, history):
        return {
            "canonical_question": with_topic(question, topic, history),
            "context_type": "follow_up",
            "memory_updates": _memory(view, topic or topic_of(question)),
        }
    return {
        "canonical_question": question,
        "context_type": "new_topic",
        "memory_updates": _memory(view, topic_of(question)),
    }


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
    ),
)
def distil(view: Message, llm: Model) -> Writes:
    """Let the model make the message a question that stands alone.

    A message that is nothing but a goodbye needs no model to be understood.
    """
    text, question = _said(view)
    waiting = view.open_clarification is not None
    if any(says_goodbye(said, asked=waiting) for said in (text, question)):
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
    """Resolve references, recognise a reply to a clarification and a leave-taking.

    A question that stays open is written as it is, so that search can find what to offer.
    """
    text, question = _said(view)
    waiting = view.open_clarification is not None
    if leaves(question, asked=waiting):
        return farewell(question, waiting=waiting)
    writes = _understood(view, question)
    canonical = writes["canonical_question"]
    more = not COLLECTING.isdisjoint(canonical.casefold().split())
    related = [] if writes["context_type"] == "new_topic" else (view.history or [])[-RELATED:]
    writes |= {
        "related_history": related,
        "response_notes": wishes.holding(wishes.notes(text), view.facts or []),
        "retrieval_k": settings.SEARCH_RESULTS_LIMIT + MORE * more,
    }
    if vagueness(canonical) > VAGUE:
        unresolved = refers_back(canonical)
        reason = Reason.MISSING_CONTEXT if unresolved else Reason.VAGUE_REQUEST
        writes |= {"needs_clarification": True, "clarification_reason": reason}
    return writes
