"""Turn memory: what a turn sees of its conversation, and what the conversation keeps of it."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.dispatch import receiver
from django.utils.timezone import now

from agents.attributes import REFUND_IN_PROGRESS, RefundForm
from agents.ending.summary import bounded, fact_note
from agents.envelopes import envelope_ending, withhold
from agents.intake.route_stickiness import is_on_route
from agents.models import Envelope
from agents.names import Role, Route, Status
from agents.support.dialogue.refund_form import left_alone
from conversations import endings, handover
from conversations.errors import RefusedRetake, UnknownMessage
from conversations.grants import UNBOUND, Bounds
from conversations.models import Assistant, Conversation, Handover, Message
from conversations.reach import searched
from knowledge import versions
from knowledge.models import Document

# What an answer refers to is always there: the last question and its answer.
FEWEST_MESSAGES = 2
# What one turn adds: two messages, and usually less than this part of HISTORY_TOKENS.
TURN_MESSAGES, TURN_PART = 2, 0.25
# Messages, and tokens of them, that are folded into the summary in one turn. What is more waits
# for the next one: a turn adds fewer than leave, so the rest gets less and less.
LEAVING_MESSAGES = 40
LEAVING_TOKENS = 6000
# Around each message in a prompt: who said it, and when.
FRAME_TOKENS = 8
MAX_FACTS = 20
NOTE = "Note for the assistant, not told to the user: "
MAX_OFFERS = 6
# What a turn sees of its conversation under the same name.
SEEN = (
    "summary",
    "facts",
    "topic",
    "open_clarification",
    "clarification_rounds",
    "last_agent",
    "context_flags",
    "refund_form",
)


def recall(
    conversation: Conversation,
    text: str,
    *,
    key: str = "",
    assistant: Assistant | None = None,
    audience: str = "",
    bound: Bounds = UNBOUND,
) -> dict[str, Any]:
    """Return the memory of a turn that begins with `text`, by `agents.attributes.MEMORY`.

    `key` is the id of the API key it was asked with, `bound` what that is bound to, `assistant` who
    answers, and `audience` whom the documents must be for.
    """
    history, leaving = split_history(conversation)
    chosen = list(conversation.collections.values_list("name", flat=True))
    collections = searched(assistant, chosen, bound)
    return ({"assistant": assistant.persona()} if assistant else {}) | {
        "text": text,
        "history": remarks(history),
        "summary": conversation.summary,
        "facts": conversation.facts,
        "topic": conversation.topic,
        "current_time": now().isoformat(),
        "language_preference": conversation.language_preference or None,
        "open_clarification": conversation.open_clarification,
        "clarification_rounds": conversation.clarification_rounds,
        "last_agent": conversation.last_agent,
        "context_flags": conversation.context_flags,
        "refund_form": conversation.refund_form,
        "billing_case_id": conversation.billing_case_id,
        "collections": collections,
        "audience": audience,
        "offers": offers(collections, audience),
        "user_id": conversation.user_id,
        "owner": f"user:{conversation.owner_id}" if conversation.owner_id else "local",
        "key": key,
        "leaving": remarks(leaving),
    }


def split_history(conversation: Conversation) -> tuple[list[Message], list[Message]]:
    """Return the messages a turn sees, and those that leave in it; oldest first.

    The latest HISTORY_MESSAGES that fit into HISTORY_TOKENS are seen, the last two in any case.
    When one that is not in the summary yet may drop out next, it leaves with all that are older
    than the latest half: so a model is asked every third turn or so, and not in each.
    """
    said = conversation.messages.filter(taken_back=False)
    latest = list(said.order_by("-created", "-pk")[: settings.HISTORY_MESSAGES])
    history = latest[: max(FEWEST_MESSAGES, count_fitting(latest, settings.HISTORY_TOKENS))]
    safe = latest[: settings.HISTORY_MESSAGES - TURN_MESSAGES]
    safe = safe[: count_fitting(safe, round(settings.HISTORY_TOKENS * (1 - TURN_PART)))]
    waiting = unsummarised(conversation)
    if not waiting or waiting[0] in safe:
        return history[::-1], []
    staying = safe[: len(safe) // 2]
    leaving = [message for message in waiting if message not in staying]
    return history[::-1], leaving[: max(1, count_fitting(leaving, LEAVING_TOKENS))]


def unsummarised(conversation: Conversation) -> list[Message]:
    """Return the oldest messages that are not in the summary yet, in their order."""
    messages = conversation.messages.filter(taken_back=False).order_by("created", "pk")
    if conversation.summarised_until:
        messages = messages.filter(created__gt=conversation.summarised_until)
    return list(messages[:LEAVING_MESSAGES])


def count_fitting(messages: Sequence[Message], limit: int) -> int:
    """Return how many of the messages, from the first, have at most `limit` tokens together."""
    left = limit
    for place, message in enumerate(messages):
        left -= tokens(message.text)
        if left < 0:
            return place
    return len(messages)


def tokens(text: str) -> int:
    """Return about how many tokens a model makes of a message.

    A quarter of its bytes in UTF-8: the usual four characters to a token in English, two in
    Cyrillic, and somewhat less than one per character in Chinese. No model's own tokenizer is
    asked: every model has another, and web processes load none.
    """
    return len(text.encode()) // 4 + FRAME_TOKENS


def remarks(messages: Iterable[Message]) -> list[dict[str, str]]:
    """Return messages as agents see them; notes of staff, which the user never saw, are marked."""
    return [
        {
            "role": message.role,
            "text": f"{NOTE}{message.text}" if message.is_note else message.text,
            "time": message.created.isoformat(),
        }
        for message in messages
    ]


def offers(collections: list[str], audience: str = "") -> list[str]:
    """Return titles of a few documents, so that a refusal can name what can be asked instead."""
    documents = Document.objects.exclude(title="")
    if audience:
        documents = documents.filter(audience__in=("", audience))
    if collections:
        documents = documents.filter(collection__name__in=collections)
    else:
        documents = documents.filter(collection__only_by_name=False)
    titles = documents.order_by("source").values_list("title", flat=True)
    # Who describes a page means it to be read; licences and the like have no description.
    return list(titles.exclude(description="")[:MAX_OFFERS] or titles[:MAX_OFFERS])


@receiver(envelope_ending)
def remember(sender: object, envelope: Envelope, **_: Any) -> None:
    """Store the reply and what was learnt, in the transaction that ends the turn.

    Where staff have taken the conversation over meanwhile, the reply is withheld.
    """
    conversation = (
        Conversation.objects.select_for_update().filter(pk=envelope.conversation_id).first()
    )
    if conversation is None:
        return
    _store_learnt(conversation, envelope.payload)
    if conversation.status == Conversation.Status.WITH_STAFF:
        withhold(envelope)
    else:
        _store_reply(conversation, envelope)
    conversation.save()
    endings.record(envelope, conversation.session)


def rewind(conversation: Conversation, turn: uuid.UUID) -> None:
    """Take back a message of a locked conversation, with all that was said after it.

    The conversation is again what that turn saw when it began; what was done for the user stays
    done. Raises UnknownMessage for what was not said here, and RefusedRetake.
    """
    messages = conversation.messages.filter(taken_back=False)
    asked = messages.filter(turn=turn, role=Message.Author.USER).select_related("turn").first()
    if asked is None or asked.turn is None:
        raise UnknownMessage
    gone = messages.filter(created__gte=asked.created)
    if gone.filter(role=Message.Author.STAFF).exists():
        raise RefusedRetake
    turns = Envelope.objects.filter(pk__in=gone.values("turn")).order_by("create_ts")
    folded = [
        each["leaving"][0]["time"]
        for each in turns.values_list("memory", flat=True)
        if each.get("leaving")
    ]
    if folded and conversation.summarised_until:
        before = datetime.fromisoformat(folded[0]) - Message.LEAST
        conversation.summarised_until = min(conversation.summarised_until, before)
    memory = asked.turn.memory
    for name in SEEN:
        setattr(conversation, name, memory[name])
    conversation.language_preference = memory["language_preference"] or ""
    gone.update(taken_back=True)


def _store_reply(conversation: Conversation, envelope: Envelope) -> None:
    """Say what the turn came to, and whose turn it is now."""
    payload = envelope.payload
    if envelope.status == Status.COMPLETED:
        versions.record_citations(envelope.pk, payload.get("citations_used") or [])
    said = payload.get("response", "")
    conversation.message(Message.Author.ASSISTANT, said, turn=envelope).save()
    if not _is_beside(payload):
        _store_open_question(conversation, envelope)
    is_open = conversation.open_clarification is not None
    conversation.status = Conversation.Status.AWAITING_USER if is_open else Conversation.Status.OPEN
    if envelope.status in {Status.COMPLETED, Status.AWAITING_USER}:
        conversation.last_agent = _last_on_a_route(envelope) or conversation.last_agent
    if envelope.status == Status.WITH_STAFF:
        is_asked_for = payload.get("small_talk") == "person"
        handover.begin(conversation, Handover.Why.PERSON if is_asked_for else Handover.Why.ROUNDS)
    else:
        handover.ring(conversation.pk)


def _is_beside(payload: dict[str, Any]) -> bool:
    """Whether the turn was small talk, which leaves a question that is open as it was."""
    return bool(payload.get("small_talk")) and payload.get("clarification_result") != "exit"


def _store_open_question(conversation: Conversation, envelope: Envelope) -> None:
    is_open = envelope.status == Status.AWAITING_USER
    conversation.open_clarification = _open_question(envelope.payload) if is_open else None
    conversation.clarification_rounds = conversation.clarification_rounds + 1 if is_open else 0


def _store_learnt(conversation: Conversation, payload: dict[str, Any]) -> None:
    """Take over what agents learnt, however the turn ended.

    Without a `summary_update` the messages that were to be folded in leave again next turn. Facts
    that are too many go on in the summary.
    """
    updates = payload.get("memory_updates") or {}
    if folded := payload.get("summary_update"):
        conversation.summary = folded["summary"]
        if folded["until"]:
            conversation.summarised_until = datetime.fromisoformat(folded["until"])
    _store_state(conversation, payload.get("state_updates"))
    conversation.topic = updates.get("topic") or conversation.topic
    if (preferred := updates.get("language_preference")) is not None:
        conversation.language_preference = preferred
    withdrawn = set(map(_plain, updates.get("withdrawn", [])))
    valid = [fact for fact in conversation.facts if _plain(fact) not in withdrawn]
    facts = distinct([*valid, *updates.get("facts", [])])
    conversation.facts, former = facts[-MAX_FACTS:], facts[:-MAX_FACTS]
    if former:
        notes = [fact_note(fact, now().isoformat()) for fact in former]
        conversation.summary = bounded([*conversation.summary.splitlines(), *notes])


def _store_state(conversation: Conversation, updates: dict[str, Any] | None) -> None:
    """Take over what a role did for the user; without that, an open form was left alone."""
    flags: dict[str, bool] = {}
    if updates is not None:
        flags = updates["context_flags"]
        conversation.refund_form = updates.get("refund_form")
        conversation.billing_case_id = updates["billing_case_id"] or conversation.billing_case_id
    elif conversation.refund_form:
        form = left_alone(RefundForm.model_validate(conversation.refund_form))
        conversation.refund_form = form.model_dump(mode="json") if form else None
        flags = {} if form else {REFUND_IN_PROGRESS: False}
    conversation.context_flags = {**conversation.context_flags, **flags}


def _last_on_a_route(envelope: Envelope) -> str:
    """Who answered, or which route the question was on that was asked back about; or neither.

    A command or small talk is on no route: it leaves the conversation where it was.
    """
    if _is_beside(envelope.payload):
        return ""
    role, route = last_agent(envelope), envelope.payload.get("route") or ""
    if is_on_route(role):
        return role
    return route if route != Route.FALLBACK else ""


def last_agent(envelope: Envelope) -> str:
    """Return the role whose words ended the turn; the manager has none of its own.

    What an analysis found, the orchestrator alone says, whoever has read it after.
    """
    steps = envelope.steps.exclude(role=Role.MANAGER).filter(status="done").order_by("-number")
    role = steps.values_list("role", flat=True).first() or ""
    is_analysis = envelope.payload.get("route") == Route.ANALYSIS
    return Role.ORCHESTRATOR.value if role == Role.QUALITY and is_analysis else role


def _open_question(payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": payload.get("canonical_question") or payload["text"],
        "reason": payload["clarification_reason"],
        "options": payload.get("suggested_actions", []),
    }


def distinct(facts: list[str]) -> list[str]:
    """Return each fact once, oldest first; one that was said again counts as new."""
    newest: dict[str, str] = {}
    for fact in reversed(facts):
        newest.setdefault(_plain(fact), fact)
    newest.pop("", None)
    return list(newest.values())[::-1]


def _plain(fact: str) -> str:
    return " ".join(fact.casefold().split())
