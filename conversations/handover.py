"""Handover: the rules by which a conversation is with staff, from a request to its return.

All of it stands in PostgreSQL and changes under the conversation's lock. A bell in Redis tells who
watches to look again; one that is lost costs seconds.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Min, Q, QuerySet
from django.utils.timezone import now

from agents import envelopes
from agents.models import Envelope
from agents.names import Status
from agents.steps import events
from conversations.errors import RefusedHandover
from conversations.models import Conversation, Handover, Message, Notification

Author = Message.Author
UNENDED = {"returned": None, "closed": None}


def begin(conversation: Conversation, why: Handover.Why, by: User | None = None) -> Handover:
    """Hand a locked conversation to staff: to `by`, or to whoever takes it, who is told."""
    conversation.status = Conversation.Status.WITH_STAFF
    conversation.open_clarification, conversation.clarification_rounds = None, 0
    conversation.save()
    # By the clock of the messages: what is said from now on is later.
    moment = conversation.updated
    last = conversation.messages.order_by("created").last()
    is_awaited = by is None or (last is not None and last.role == Author.USER)
    row = Handover.objects.create(
        conversation=conversation,
        why=why,
        requested=moment,
        assigned=by,
        taken=moment if by else None,
        waiting_since=moment if is_awaited else None,
    )
    if by is None:
        for channel in channels():
            Notification.objects.create(handover=row, channel=channel)
    ring(conversation.pk)
    return row


def channels() -> Iterator[Notification.Channel]:
    """Yield the ways in which staff are told."""
    if settings.HANDOVER_WEBHOOK:
        yield Notification.Channel.WEBHOOK
    if settings.HANDOVER_EMAIL:
        yield Notification.Channel.EMAIL


def hear(conversation: Conversation, message: Message) -> None:
    """Note that the user of a locked conversation with staff said something."""
    conversation.handovers.filter(**UNENDED, waiting_since=None).update(
        waiting_since=message.created
    )
    ring(conversation.pk)


def take_over(conversation_id: uuid.UUID, by: User) -> Handover:
    """Let `by` answer in place of the assistant, which falls silent. Raises RefusedHandover."""
    if not settings.HANDOVER:
        raise RefusedHandover("Conversations are not handed over here: set HANDOVER=true.")
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        if conversation.status == Conversation.Status.WITH_STAFF:
            raise RefusedHandover("This conversation is with staff already.")
        row = begin(conversation, Handover.Why.STAFF, by)
    _stop_turns(conversation_id)
    return row


def _stop_turns(conversation_id: uuid.UUID) -> None:
    """End turns that are under way: as the conversation is with staff, without a word."""
    running = Envelope.objects.filter(conversation_id=conversation_id, status=Status.RUNNING)
    for turn in running.values_list("pk", flat=True):
        envelopes.cancel(turn)


def take(handover_id: int, by: User) -> None:
    """Assign it to `by`, unless somebody else was quicker."""
    with _held(handover_id, by) as row:
        _assign(row, by)


def release(handover_id: int) -> None:
    """Let somebody else take it."""
    with _held(handover_id) as row:
        row.assigned = row.taken = row.read_until = None


def say(handover_id: int, by: User, text: str, *, seen: datetime | None = None) -> Message:
    """Answer the user; who answers has taken it.

    What the user wrote after `seen`, the time of the last message `by` was shown, still waits.
    """
    with _held(handover_id, by) as row:
        _assign(row, by)
        unseen = _said_by_user(row, seen).first() if seen else None
        message = row.conversation.message(Author.STAFF, text, by=by)
        message.save()
        row.waiting_since = unseen.created if unseen else None
        row.read_until = seen if unseen else message.created
    return message


def give_back(handover_id: int, by: User, *, seen: datetime | None, note: str = "") -> None:
    """Let the assistant answer from the next message on, which then knows the note.

    `seen` is the time of the last message `by` was shown.
    """
    with _ending(handover_id, by, seen) as row:
        row.returned, row.note = now(), note.strip()
        if row.note:
            row.conversation.message(Author.STAFF, row.note, by=by, is_note=True).save()


def close(handover_id: int, by: User, *, seen: datetime | None) -> None:
    """Say that it is settled; what the user may ask next is the assistant's again."""
    with _ending(handover_id, by, seen) as row:
        row.closed = now()


def read(handover_id: int, by: User, until: datetime) -> None:
    """Note that who is assigned has read what was said until then."""
    Handover.objects.filter(pk=handover_id, assigned=by).update(read_until=until)


@contextmanager
def _ending(handover_id: int, by: User, seen: datetime | None) -> Iterator[Handover]:
    row = Handover.objects.filter(pk=handover_id).first()
    if row and row.is_open:
        # What was begun before staff came must not be answered after they left.
        _stop_turns(row.conversation_id)
    with _held(handover_id, by) as row:
        if _said_by_user(row, seen or row.requested).exists():
            raise RefusedHandover("The user has written meanwhile: read it first.")
        _assign(row, by)
        row.waiting_since = None
        row.conversation.status = Conversation.Status.OPEN
        yield row


def _said_by_user(row: Handover, since: datetime) -> QuerySet[Message]:
    messages = row.conversation.messages.filter(role=Author.USER, created__gt=since)
    return messages.order_by("created")


@contextmanager
def _held(handover_id: int, by: User | None = None) -> Iterator[Handover]:
    """Lock it, and store what becomes of it.

    Raises RefusedHandover when it has ended, or when somebody else than `by` has taken it.
    """
    with transaction.atomic():
        held = Conversation.objects.select_for_update().filter(handovers=handover_id).first()
        row = Handover.objects.select_related("assigned").filter(pk=handover_id).first()
        if held is None or row is None or not row.is_open:
            raise RefusedHandover("This conversation is not with staff any more.")
        if by and row.assigned and row.assigned != by:
            raise RefusedHandover(f"{row.assigned.get_username()} has taken this conversation.")
        row.conversation = held
        yield row
        row.save()
        held.save()
        ring(held.pk)


def _assign(row: Handover, by: User) -> None:
    if row.assigned is None:
        row.assigned, row.taken = by, now()


@dataclass(frozen=True)
class Figures:
    """Conversations with staff: how many wait to be taken, for staff, and for their user."""

    states: dict[str, int]
    oldest: float  # seconds that the user waits who waits longest
    untold: int  # of which staff could not be told, in one way at least


def figures() -> Figures:
    """Count the conversations that are with staff now."""
    rows = Handover.objects.filter(**UNENDED)
    counts = rows.aggregate(
        new=Count("pk", filter=Q(assigned=None)),
        waiting=Count("pk", filter=Q(assigned__isnull=False, waiting_since__isnull=False)),
        answered=Count("pk", filter=Q(assigned__isnull=False, waiting_since=None)),
    )
    since = rows.aggregate(since=Min("waiting_since"))["since"]
    oldest = max(0.0, (now() - since).total_seconds()) if since else 0.0
    untold = rows.filter(notifications__sent=None, notifications__error__gt="")
    return Figures(counts, oldest, untold.distinct().count())


def bell(conversation_id: uuid.UUID) -> str:
    """Return the Redis stream that says when there is something new in a conversation."""
    return f"conversation:{conversation_id}:bell"


def ring(conversation_id: uuid.UUID) -> None:
    """Tell who watches to look, once this is committed."""
    stream = bell(conversation_id)
    transaction.on_commit(partial(events.publish, stream, "news"), robust=True)
