"""Services: what a client can do with a conversation: ask, wait for the answer, read it."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.timezone import now

from agents import envelopes
from agents.attributes import Persona
from agents.models import Envelope
from agents.names import Route, Status
from agents.steps import events, presence
from agents.trace import correlation
from conversations import handover, reach, refusals
from conversations.errors import (
    Forgotten,
    KeyReused,
    NobodyListens,
    OtherAssistant,
    OtherDocuments,
    OtherUser,
    StillTakenIn,
    TooManyTurns,
    TurnInProgress,
    UnknownMessage,
    UnusableFilter,
    UnusableKey,
    UnusableText,
)
from conversations.grants import UNBOUND, Bounds
from conversations.lanes import FOLLOWERS, LANE
from conversations.models import Assistant, Conversation, Message
from conversations.refusals import Kind
from conversations.turn_memory import recall, rewind
from knowledge.collections import beginning, intake
from knowledge.models import Collection, Document
from knowledge.parsing.parsed_page import as_language
from knowledge.postgres_text import storable

TURNS_LOCK = 0x0D0CE29
MARGIN_SECONDS = 10.0
# Who waits looks at the row so seldom, should the word of the end be lost.
LOOK_SECONDS = 4.0
LONGEST_KEY = Message._meta.get_field("idempotency_key").max_length or 0
LONGEST_AUDIENCE = Document._meta.get_field("audience").max_length or 0


@dataclass(frozen=True)
class Asker:
    """Who asks: the owner of the key or session (None: the command line), and for whom."""

    owner: User | None
    user_id: str = ""
    key: str = ""  # id of the API key, or of a visitor's address; empty: asked without one
    bound: Bounds = UNBOUND  # what the key is bound to


@dataclass(frozen=True)
class Filters:
    """What the documents must meet that one message is answered from; empty: nothing.

    Those that name no audience are for all. Raises UnusableFilter.
    """

    languages: Sequence[str] = ()  # tags such as "de" or "pt-BR"
    audience: str = ""
    documents: Sequence[str] = ()  # ids of the only ones

    def __post_init__(self) -> None:
        """Refuse what no document can have."""
        for tag in self.languages:
            if not as_language(tag):
                raise UnusableFilter(f"{tag!r} is no language tag, such as en or pt-BR.")
        if len(self.audience) > LONGEST_AUDIENCE or storable(self.audience) != self.audience:
            raise UnusableFilter(f"An audience has at most {LONGEST_AUDIENCE} characters.")


ANY = Filters()


@dataclass(frozen=True)
class Brought:
    """What a client brings with a message that keeps conversations itself."""

    said: Sequence[tuple[Message.Author, str]] = ()  # before, oldest first
    tone: str = ""  # how it wishes to be answered
    route: Route | None = None  # the only one it may take; None: those of its assistant


NOTHING = Brought()


def ask(
    text: str,
    asker: Asker,
    *,
    session: str = "",
    assistant: str = "",
    collections: Sequence[str] | None = (),
    filters: Filters = ANY,
    idempotency_key: str = "",
    brought: Brought = NOTHING,
    replaces: uuid.UUID | None = None,
) -> Envelope:
    """Begin the turn that answers `text` and return its envelope.

    `session` continues a conversation of the same owner or begins one of that name, which stays
    with its `assistant`. `collections` binds it to these names from now on, None to none any more;
    `filters` hold for this message alone. What is `brought` was said before it began. A message
    that `replaces` a turn takes it back, with all that came after. Under an `idempotency_key` a
    message begins one turn; without a session the key names the conversation. What is said to
    staff ends its turn at once. Raises a ConversationError before anything is kept.
    """
    text, bound, key = checked(text), asker.bound, idempotency_key or None
    session = session or _session_of(idempotency_key)
    # Before anything is told of the conversation: its assistant may be another key's.
    answering = reach.chosen(assistant, bound, begun_with(asker, session))
    _refuse_foreign(asker, session)
    if earlier := _taken(asker, session, idempotency_key, text):
        return earlier
    chosen = reach.chosen_collections(answering, collections or (), bound)
    audience = reach.audience(answering, filters.audience.strip())
    # To reach staff, nobody need listen and no document be there.
    if not _with_staff(asker, session):
        _refuse_unready(answering, chosen, bound)
    with transaction.atomic():
        conversation, _ = _conversation(asker, session, answering, brought.said)
        if earlier := _taken(asker, session, idempotency_key, text):
            return earlier
        if conversation.status == Conversation.Status.RUNNING:
            raise TurnInProgress
        _refuse_foreign(asker, session)
        if replaces:
            rewind(conversation, replaces)
        if chosen or collections is None:
            conversation.collections.set(chosen)
        memory = recall(
            conversation, text, key=asker.key, assistant=answering, audience=audience, bound=bound
        )
        memory |= _for_this_message(memory, filters, brought)
        message = conversation.message(Message.Author.USER, text, idempotency_key=key)
        return _begin(conversation, message, memory)


def begin(
    asker: Asker,
    *,
    session: str = "",
    assistant: str = "",
    collections: Sequence[str] = (),
    idempotency_key: str = "",
) -> tuple[Conversation, bool]:
    """Return a conversation in which nothing was said yet, and True; or the one of this name.

    The arguments are those of `ask`, which holds to the same. Raises a ConversationError before
    anything is kept.
    """
    _refuse_unusable(idempotency_key)
    session = session or _session_of(idempotency_key)
    answering = reach.chosen(assistant, asker.bound, begun_with(asker, session))
    _refuse_foreign(asker, session)
    chosen = reach.chosen_collections(answering, collections, asker.bound)
    with transaction.atomic():
        conversation, begins = _conversation(asker, session, answering)
        if chosen:
            conversation.collections.set(chosen)
    return conversation, begins


def _refuse_foreign(asker: Asker, session: str) -> None:
    """Raise OtherDocuments when documents were told of that are out of reach of the key."""
    if not asker.bound.collections:
        return
    rows = Conversation.objects.filter(owner=asker.owner, session=session)
    for conversation_id in rows.values_list("pk", flat=True):
        if reach.foreign_turns(conversation_id, asker.bound).exists():
            raise OtherDocuments


def _for_this_message(memory: dict[str, Any], filters: Filters, brought: Brought) -> dict[str, Any]:
    """What holds for one message: its documents, and its wishes beside the assistant's."""
    languages = [as_language(tag) for tag in filters.languages]
    own: dict[str, Any] = {"languages": languages, "documents": list(filters.documents)}
    assistant: Persona = memory.get("assistant") or Persona()
    changes: dict[str, Any] = {}
    if brought.tone:
        changes["tone"] = " ".join(filter(None, (assistant.tone, brought.tone)))
    if brought.route:
        changes["routes"] = [brought.route]
    return own | {"assistant": assistant.model_copy(update=changes)} if changes else own


def _refuse_unready(
    assistant: Assistant | None, chosen: Sequence[Collection], bound: Bounds
) -> None:
    reach.refuse_unready(assistant, bound)
    # At a first start both hold for a while, and this one says how long it will be.
    refuse_too_early(chosen or reach.own_collections(assistant, bound))
    if missing := presence.missing_roles():
        raise NobodyListens(missing)


def _begin(conversation: Conversation, message: Message, memory: dict[str, Any]) -> Envelope:
    """Store the message with its turn, which staff answer if the conversation is theirs."""
    is_for_staff = conversation.status == Conversation.Status.WITH_STAFF
    place = 0 if is_for_staff else refuse_too_many(conversation.owner, memory["key"])
    message.turn = envelope = envelopes.start(
        memory, conversation_id=conversation.pk, message_id=message.pk, place=place
    )
    correlation.note(turn=envelope.pk)
    message.save()
    if is_for_staff:
        envelopes.end(envelope, Status.WITH_STAFF)
        handover.hear(conversation, message)
    else:
        conversation.status = Conversation.Status.RUNNING
        handover.ring(conversation.pk)
    conversation.save()
    return envelope


def _session_of(idempotency_key: str) -> str:
    """The name of a conversation that got none: the same for a message that is sent again."""
    if not idempotency_key:
        return str(uuid.uuid4())
    return str(uuid.uuid5(uuid.NAMESPACE_OID, idempotency_key))


def _taken(asker: Asker, session: str, key: str, text: str) -> Envelope | None:
    """Return the turn of the message that was sent with this key.

    Raises KeyReused, and UnusableKey for what is none.
    """
    if not key:
        return None
    _refuse_unusable(key)
    sent = Message.objects.filter(
        conversation__owner=asker.owner, conversation__session=session, idempotency_key=key
    )
    earlier = sent.select_related("turn").first()
    if earlier and earlier.text != text:
        raise KeyReused
    return earlier.turn if earlier else None


def _refuse_unusable(key: str) -> None:
    if len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise UnusableKey


def _with_staff(asker: Asker, session: str) -> bool:
    theirs = Conversation.objects.filter(owner=asker.owner, session=session)
    return theirs.filter(status=Conversation.Status.WITH_STAFF).exists()


def checked(text: str) -> str:
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


def refuse_too_early(chosen: Sequence[Collection]) -> None:
    """Raise StillTakenIn while documents are taken in and none is there yet, or Docent begins."""
    documents = Document.objects.filter(collection__in=chosen) if chosen else Document.objects
    state = beginning() if documents.exists() else intake(each.name for each in chosen)
    if state:
        progress = f"{state.finished:,}/{state.items:,}"
        raise StillTakenIn(f"{state}; ask again in a moment.", progress)


def refuse_too_many(owner: User | None, visitor: str = "") -> int:
    """Return how many turns of this owner are under way; without one, of this visitor's address.

    Raises TooManyTurns when all turns, or those of theirs, have reached their limit.

    Called in the transaction that begins the turn, which then holds a lock until it is committed:
    turns begin one after another, so none is counted too late. Turns past their deadline don't
    count, even if nobody has ended them.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [TURNS_LOCK])
    running = Message.objects.filter(
        role=Message.Author.USER, turn__status=Status.RUNNING, turn__deadline__gte=now()
    )
    theirs = Q(conversation__owner=owner)
    if owner is None:
        theirs &= Q(turn__memory__key=visitor)
    counts = running.aggregate(all=Count("pk"), theirs=Count("pk", filter=theirs))
    if counts["theirs"] >= settings.MAX_TURNS_PER_KEY:
        refusals.note(Kind.TURNS)
        raise TooManyTurns(
            f"No more than {settings.MAX_TURNS_PER_KEY:,} of your questions are answered at a "
            f"time. Try again in {TooManyTurns.retry_seconds} seconds."
        )
    if counts["all"] >= settings.MAX_TURNS:
        refusals.note(Kind.TURNS)
        raise TooManyTurns(
            f"No more than {settings.MAX_TURNS:,} questions are answered at a time. "
            f"Try again in {TooManyTurns.retry_seconds} seconds."
        )
    return int(counts["theirs"])


def begun_with(asker: Asker, session: str) -> str | None:
    """Return the name of the assistant a conversation began with, if any; None: it has not."""
    begun = Conversation.objects.filter(owner=asker.owner, session=session) if session else None
    return begun.values_list("assistant", flat=True).first() if begun is not None else None


def _conversation(
    asker: Asker,
    session: str,
    assistant: Assistant | None,
    said: Sequence[tuple[Message.Author, str]] = (),
) -> tuple[Conversation, bool]:
    """Lock the conversation, begun if need be with what was said before; whether it was.

    Raises OtherAssistant if just begun with another, and OtherUser for whoever is named and did not
    begin it: the account of who did would be shown.
    """
    name = assistant.name if assistant else ""
    _, begins = Conversation.objects.get_or_create(
        owner=asker.owner,
        session=session,
        defaults={"user_id": asker.user_id, "assistant": name},
    )
    conversation = Conversation.objects.select_for_update().get(owner=asker.owner, session=session)
    correlation.note(conversation=conversation.pk)
    if conversation.assistant != name:
        raise OtherAssistant
    if asker.user_id and conversation.user_id != asker.user_id:
        raise OtherUser
    if begins:
        Message.objects.bulk_create(
            Message(
                conversation=conversation,
                role=author,
                text=text,
                # Earlier than all that will be said, in their order.
                created=conversation.created - place * Message.LEAST,
            )
            for place, (author, text) in zip(range(len(said), 0, -1), said, strict=True)
        )
    return conversation, begins


def with_beginnings(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Add `first_words`, what each began with, and `message_count`, which leaves notes out.

    Counted apart from the main query, where joins of filters would multiply them.
    """
    messages = Message.objects.filter(conversation=OuterRef("pk"), is_note=False, taken_back=False)
    counts = messages.order_by().values("conversation").annotate(n=Count("pk")).values("n")
    return conversations.annotate(
        first_words=Subquery(messages.order_by("created").values("text")[:1]),
        message_count=Coalesce(Subquery(counts), 0),
    )


def messages_after(
    conversation: Conversation, after: uuid.UUID | None, *, most: int
) -> list[Message]:
    """Return what the user is shown after a message, or from the first; at most so many.

    Raises UnknownMessage when the conversation has none with that id.
    """
    messages = conversation.messages.filter(is_note=False, taken_back=False)
    messages = messages.order_by("created", "pk")
    if after:
        last = conversation.messages.filter(pk=after).first()
        if last is None:
            raise UnknownMessage
        later = Q(created__gt=last.created) | Q(created=last.created, pk__gt=last.pk)
        messages = messages.filter(later)
    return list(messages[:most])


def wait(envelope: Envelope) -> Envelope:
    """Return the envelope once its turn has ended, or as it stands when its deadline is long past.

    Holds no database connection while it waits. Raises Forgotten when it was deleted meanwhile.
    """
    connection.close()
    # Whose question was taken must not stand in line behind those who still ask.
    LANE.set(FOLLOWERS)
    look = time.monotonic() + LOOK_SECONDS
    for event in events.follow(envelope.result_list, seconds=longest_wait(envelope)):
        if event:
            break
        if time.monotonic() >= look:
            look = time.monotonic() + LOOK_SECONDS
            if current(envelope).ended:
                break
    return current(envelope)


def current(envelope: Envelope) -> Envelope:
    """Return the envelope as it is now; who waits for an overdue one ends it, sweeper or not."""
    if now() > envelope.deadline:
        envelopes.expire(envelope.pk)
    row = Envelope.objects.filter(pk=envelope.pk).first()
    connection.close()
    if row is None:
        raise Forgotten
    return row


def longest_wait(envelope: Envelope) -> float:
    """Return for how many seconds it makes sense to wait for the turn.

    It may yet become an analysis, which has a longer time.
    """
    seconds = (envelope.deadline - envelope.create_ts).total_seconds()
    if Route.ANALYSIS in envelope.payload.get("enabled_routes", ()):
        seconds = max(seconds, settings.ANALYSIS_DEADLINE_SECONDS)
    return seconds + MARGIN_SECONDS
