"""OpenAI talk: which conversation a client's messages belong to, as OpenAI's API knows none."""

from collections.abc import Sequence
from datetime import timedelta

from django.utils.timezone import now

from agents.models import Envelope
from agents.names import Status
from agents.words import ENGLISH, Phrase
from conversations.models import Conversation, Message
from conversations.openai_models import OfferedModel
from conversations.openai_request import Remark
from conversations.services import Asker

# So long a conversation is found again by what was said in it; later it begins anew.
FOUND_FOR = timedelta(days=7)
# Its latest questions, which must be the same.
COMPARED = 20
MOST_CANDIDATES = 20
Author = Message.Author


def latest(said: Sequence[Remark]) -> list[Remark]:
    """Return what was said from the twentieth last question on, the part that is compared."""
    questions = [place for place, (author, _) in enumerate(said) if author == Author.USER]
    return list(said[questions[-COMPARED] :] if len(questions) > COMPARED else said)


def session_of(asker: Asker, model: OfferedModel, said: Sequence[Remark], key: str) -> str:
    """Return the session of the conversation that a message goes on with; empty: a new one.

    It is the one in which a message was sent with this Idempotency-Key, or else the latest of the
    same asker and model in which the same was said before. So a question that was asked back, a
    refund that is being asked for and staff who took over are gone on with.
    """
    if key and (session := _session_of_key(asker, key)):
        return session
    questions = [text for author, text in said if author == Author.USER]
    if not questions:
        return ""
    candidates = Message.objects.filter(
        role=Author.USER,
        text=questions[-1],
        conversation__owner=asker.owner,
        conversation__user_id=asker.user_id,
        conversation__assistant=model.assistant,
        conversation__updated__gte=now() - FOUND_FOR,
    ).exclude(conversation__status=Conversation.Status.RUNNING)
    latest_first = candidates.select_related("conversation").order_by("-created")
    for message in latest_first[:MOST_CANDIDATES]:
        if _is_of(message.conversation, model, said):
            return message.conversation.session
    return ""


def _session_of_key(asker: Asker, key: str) -> str:
    sent = Message.objects.filter(conversation__owner=asker.owner, idempotency_key=key)
    return str(sent.values_list("conversation__session", flat=True).first() or "")


def _is_of(conversation: Conversation, model: OfferedModel, said: Sequence[Remark]) -> bool:
    """Whether the same questions were asked, with answers that the client was given.

    What the client was told may be more: what staff said, and that they were told.
    """
    bound = set(conversation.collections.values_list("name", flat=True))
    if bound != set(model.collections or ()):
        return False
    stored = conversation.messages.order_by("-created", "-pk")
    asked = stored.filter(role=Author.USER).values_list("text", flat=True)[:COMPARED]
    questions = [text for author, text in said if author == Author.USER]
    if list(asked)[::-1] != questions[-COMPARED:]:
        return False
    answered = stored.filter(role=Author.ASSISTANT).values_list("text", flat=True)[:COMPARED]
    told = "\n".join(text for author, text in said if author == Author.ASSISTANT)
    return all(text.strip() in told for text in list(answered)[: len(questions)])


def told(envelope: Envelope, reply: str) -> str:
    """Return what a client is told in a turn that has ended.

    Before the reply stands what staff said since the message before: in OpenAI's API nothing can
    be told but as an answer. Without a reply it is that staff answer.
    """
    is_for_staff = not reply and envelope.status == Status.WITH_STAFF
    said = _passed_on(envelope) if is_for_staff else reply
    return "\n\n".join([*_staff_said(envelope), said])


def _staff_said(envelope: Envelope) -> list[str]:
    message = Message.objects.filter(pk=envelope.message_id).first()
    if message is None:
        return []
    before = Message.objects.filter(
        conversation=message.conversation_id, created__lt=message.created
    ).order_by("-created", "-pk")
    previous = before.filter(role=Author.USER).first()
    said = before.filter(role=Author.STAFF, is_note=False)
    if previous:
        said = said.filter(created__gt=previous.created)
    return list(said.values_list("text", flat=True))[::-1]


def _passed_on(envelope: Envelope) -> str:
    """Say that staff were told, in the language of the last turn that had one."""
    turns = Envelope.objects.filter(
        conversation_id=envelope.conversation_id, payload__language__isnull=False
    )
    spoken = turns.order_by("-create_ts").values_list("payload__language", flat=True).first()
    return Phrase.PASSED_ON.in_language(spoken or ENGLISH)
