"""Services: what a client can do with a conversation."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils.timezone import now

from agents import envelopes, events, presence
from agents.models import Envelope
from agents.names import Role
from conversations.errors import Forgotten, NobodyListens, TurnInProgress, UnusableText
from conversations.memory import recall
from conversations.models import Conversation, Message
from conversations.pressure import refuse_too_many
from knowledge import reliance
from knowledge.collections import named

MARGIN_SECONDS = 10.0


@dataclass(frozen=True)
class Asker:
    """Who asks: the owner of the key or session (None: the command line), and for whom."""

    owner: User | None
    user_id: str = ""
    key: str = ""  # id of the API key; empty: asked without one


def usable(text: str) -> str:
    """Return the text of a message, stripped, or raise UnusableText saying what is wrong."""
    text = text.strip()
    if not text:
        raise UnusableText("The message is empty: write a question.")
    if len(text) > settings.MAX_QUESTION_LENGTH:
        raise UnusableText(
            f"The message has {len(text):,} characters; at most "
            f"{settings.MAX_QUESTION_LENGTH:,} are allowed."
        )
    if "\x00" in text:
        raise UnusableText("The message holds a null character, which text can't contain.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UnusableText("The message holds half a character: send it as UTF-8.")
    return text


def ask(text: str, asker: Asker, *, session: str = "", collections: Sequence[str] = ()) -> Envelope:
    """Begin the turn that answers `text` and return its envelope.

    `session` continues a conversation of the same owner or begins one of that name;
    `collections` binds the conversation to these names from now on.

    Raises a ConversationError, or knowledge.errors.UnknownCollection, before anything is stored.
    """
    text = usable(text)
    bound = named(collections)
    if deaf := presence.missing():
        raise NobodyListens(no_consumer(deaf))
    with transaction.atomic():
        conversation = _conversation(asker, session or str(uuid.uuid4()))
        if conversation.status == Conversation.Status.RUNNING:
            raise TurnInProgress
        if bound:
            conversation.collections.set(bound)
        memory = recall(conversation, text, key=asker.key)
        place = refuse_too_many(asker.owner)
        message = Message(conversation=conversation, role=Message.Author.USER, text=text)
        message.turn = envelope = envelopes.start(
            memory, conversation_id=conversation.pk, message_id=message.pk, place=place
        )
        message.save()
        conversation.status = Conversation.Status.RUNNING
        conversation.save()
    return envelope


def no_consumer(deaf: Sequence[Role]) -> str:
    """Return the sentence that names the roles without a worker."""
    names = ", ".join(deaf)
    return f"No worker listens for: {names}. Start one with: python3 manage.py workers {deaf[0]}"


def _conversation(asker: Asker, session: str) -> Conversation:
    Conversation.objects.get_or_create(
        owner=asker.owner, session=session, defaults={"user_id": asker.user_id}
    )
    return Conversation.objects.select_for_update().get(owner=asker.owner, session=session)


def wait(envelope: Envelope) -> Envelope:
    """Return the envelope once its turn has ended, or as it stands when its deadline is long past.

    Holds no database connection while it waits. Raises Forgotten when it was deleted meanwhile.
    """
    connection.close()
    for event in events.follow(envelope.result_list, seconds=patience(envelope)):
        if event or as_it_stands(envelope).ended:
            break
    return as_it_stands(envelope)


def as_it_stands(envelope: Envelope) -> Envelope:
    """Return the envelope as it is now; who waits for an overdue one ends it, sweeper or not."""
    if now() > envelope.deadline:
        envelopes.expire(envelope.pk)
    found = Envelope.objects.filter(pk=envelope.pk).first()
    connection.close()
    if found is None:
        raise Forgotten
    return found


def patience(envelope: Envelope) -> float:
    """Return for how many seconds it makes sense to wait for the turn."""
    return (envelope.deadline - envelope.create_ts).total_seconds() + MARGIN_SECONDS


def forget(conversation: Conversation) -> None:
    """Delete a conversation with everything that belongs to it: messages, turns and their traces.

    Envelopes know their conversation by its id alone, so that nothing cascades to them.
    """
    with transaction.atomic():
        # The locks of `remember`, in its order; then no message can begin another turn.
        turns = Envelope.objects.filter(conversation_id=conversation.pk).order_by("pk")
        list(turns.select_for_update())
        list(Conversation.objects.select_for_update().filter(pk=conversation.pk))
        list(turns.select_for_update())
        reliance.forget(turns.values_list("pk", flat=True))
        turns.delete()
        conversation.delete()
