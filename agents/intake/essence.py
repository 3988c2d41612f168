"""Essence: makes the message a question that stands alone, in the conversation's context."""

from collections.abc import Sequence

from django.conf import settings

from agents.attributes import MemoryUpdates, Reason, Remark
from agents.contract import View, Writes, agent
from agents.intake import wishes
from agents.intake.references import (
    last_question,
    leans_on,
    refers_back,
    topic_of,
    with_topic,
)
from agents.intake.replies import answers, leaves
from agents.intake.vagueness import VAGUE, telling, vagueness
from agents.names import Role

RELATED = 4
MORE = 4
# A question that compares or collects needs more passages than one that asks for a single fact.
COLLECTING = frozenset(
    {"all", "compare", "difference", "differences", "every", "overview", "versus"}
)


def _reformats(text: str, history: Sequence[Remark]) -> bool:
    """Whether the message only asks for the last answer in another form."""
    asked = [word for word in telling(text) if word not in wishes.FORMING and not word.isdigit()]
    wished = wishes.notes(text) or wishes.answer_language(text) or wishes.ABOUT_ANSWER.search(text)
    return bool(history and not asked and wished and set(telling(text)) & wishes.FORMING)


def _memory(text: str, topic: str) -> MemoryUpdates:
    return MemoryUpdates(
        facts=wishes.standing(text),
        topic=topic,
        language_preference=wishes.answer_language(text),
    )


def _understood(view: View, text: str, question: str) -> Writes:
    """The canonical question, its context and the topic from here on."""
    history = view.history or []
    topic = view.topic or topic_of(last_question(history))
    if view.open_clarification and (whole := answers(question, view.open_clarification)):
        return {
            "canonical_question": whole,
            "context_type": "clarification",
            "clarification_result": "search_again",
            "memory_updates": _memory(text, topic_of(whole) or topic),
        }
    if _reformats(question, history):
        again = last_question(history) or topic or question
        return {
            "canonical_question": again,
            "context_type": "follow_up",
            "memory_updates": _memory(text, topic),
        }
    if leans_on(question, history):
        return {
            "canonical_question": with_topic(question, topic, history),
            "context_type": "follow_up",
            "memory_updates": _memory(text, topic or topic_of(question)),
        }
    return {
        "canonical_question": question,
        "context_type": "new_topic",
        "memory_updates": _memory(text, topic_of(question)),
    }


@agent(
    Role.ESSENCE,
    reads=(
        "text",
        "text_eng",
        "history",
        "summary",
        "facts",
        "topic",
        "current_time",
        "open_clarification",
    ),
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
def distil(view: View) -> Writes:
    """Resolve references, recognise a reply to a clarification and a leave-taking.

    A question that stays open is written as it is, so that search can find what to offer.
    """
    text = (view.text or "").strip()
    question = (view.text_eng or text).strip()
    if leaves(question, asked=view.open_clarification is not None):
        return {
            "canonical_question": question,
            "context_type": "clarification" if view.open_clarification else "follow_up",
            "clarification_result": "exit",
        }
    writes = _understood(view, text, question)
    canonical = writes["canonical_question"]
    standing = [note for fact in view.facts or [] for note in wishes.notes(fact)]
    more = not COLLECTING.isdisjoint(canonical.casefold().split())
    related = [] if writes["context_type"] == "new_topic" else (view.history or [])[-RELATED:]
    writes |= {
        "related_history": related,
        "response_notes": list(dict.fromkeys([*wishes.notes(text), *standing])),
        "retrieval_k": settings.SEARCH_RESULTS_LIMIT + MORE * more,
    }
    if vagueness(canonical) > VAGUE:
        unresolved = refers_back(canonical)
        reason = Reason.MISSING_CONTEXT if unresolved else Reason.VAGUE_REQUEST
        writes |= {"needs_clarification": True, "clarification_reason": reason}
    return writes
