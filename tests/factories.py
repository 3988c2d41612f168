"""Factories: rows as the program writes them, for tests that look at them."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils.timezone import now
from knox.models import AuthToken

from agents import envelopes
from agents.models import Envelope, ModelCall, Step
from agents.names import Role, Status
from agents.steps import faults
from conversations.models import Conversation, Grant, Message
from conversations.turn_memory import recall
from knowledge.ingestion.removal import ROWS
from knowledge.models import Chunk, Collection, Document, Section, document_id

CITATION: dict[str, Any] = {
    "marker": "C1",
    "document_id": "d" * 32,
    "version": 3,
    "title": "Holidays",
    "section": "Leave > Carry over",
    "crumbs": ["Handbook"],
    "source": "https://example.org/holidays",
    "chunk_id": 1,
    "quote": "Unused days end in March.",
    "citation_status": "verified",
    "score": 0.9,
}


def key(user: User, **grant: Any) -> dict[str, str]:
    """The header of a new key of the user; keywords say what it may do, else it may chat."""
    token, secret = AuthToken.objects.create(user)  # type: ignore[no-untyped-call]
    Grant.objects.create(token=token, **grant)
    return {"Authorization": f"Bearer {secret}"}


def collection(
    name: str = "handbook", *, documents: int = 1, content: str = "# Holidays"
) -> Collection:
    """A collection of documents with two chunks each."""
    made = Collection.objects.create(name=name)
    for number in range(documents):
        document = Document.objects.create(
            id=document_id(name, f"{number}.md"),
            collection=made,
            source=f"{number}.md",
            origin=f"{name}/{number}.md",
            title=f"Holidays {number}",
            content=content,
            sha1="0" * 40,
        )
        section = Section.objects.create(document=document, number=1, path=["Leave", "Carry over"])
        for place in (1, 2):
            Chunk.objects.create(
                document=document,
                number=place,
                section=section,
                text=f"Unused days of part {place} end in March.",
                keywords=["holidays"],
                sha1="0" * 40,
                tokens=9,
            )
    return made


def conversation(session: str = "desk-1", *, owner: User | None = None) -> Conversation:
    """A conversation in which nothing was said yet."""
    return Conversation.objects.create(session=session, owner=owner)


def turn(
    talk: Conversation,
    text: str = "Do unused days end?",
    *,
    status: Status = Status.COMPLETED,
    **payload: Any,
) -> Envelope:
    """A turn with one step done, and unless it is running the reply in the conversation."""
    with transaction.atomic():
        message = Message(conversation=talk, role=Message.Author.USER, text=text)
        envelope = envelopes.start(
            recall(talk, text), conversation_id=talk.pk, message_id=message.pk
        )
        message.turn = envelope
        message.save()
        envelope.payload |= {"response": "Yes.", **payload}
        envelope.steps.update(
            status=Step.Status.DONE, attempt=1, started=now(), ended=now(), output={"to": ["lang"]}
        )
        if status != Status.RUNNING:
            envelopes.end(envelope, status)
        envelope.save()
    talk.refresh_from_db()
    return envelope


def end(envelope: Envelope, status: Status = Status.COMPLETED) -> None:
    """End a turn that was under way."""
    with transaction.atomic():
        envelopes.end(Envelope.objects.select_for_update().get(pk=envelope.pk), status)


def failed_turn(talk: Conversation, error: Exception) -> Envelope:
    """A turn that an error of the response agent ended."""
    envelope = turn(talk, status=Status.RUNNING)
    with transaction.atomic():
        code = faults.record(error, role=Role.RESPONSE, envelope=envelope, step=1)
        envelope.payload["response"] = f"Something went wrong: {code}"
        envelopes.end(envelope, Status.FAILED, error_id=code)
    talk.refresh_from_db()
    return envelope


def model_call(envelope: Envelope | None = None, *, step: int = 1, **values: Any) -> ModelCall:
    """A call of a model that a step of a turn made, or one made for a document."""
    number = ModelCall.objects.count() + 1
    given: dict[str, Any] = {
        "subject": f"{envelope.pk}/{step}" if envelope else "document/1",
        "number": number,
        "envelope": envelope,
        "step_number": step if envelope else None,
        "role": "evaluator",
        "owner": "user:1/" if envelope else "",
        "prompt": "evaluator",
        "prompt_hash": "0123456789ab",
        "model": "small@fake",
        "provider": "fake",
        "request": {"messages": [{"role": "system", "content": "# evaluator"}]},
        "request_hash": f"{number:064}",
        "outcome": "ok",
        "reply": "{}",
        "input_tokens": 100,
        "output_tokens": 10,
        "cost": "0.000500",
        "seconds": 0.5,
    }
    return ModelCall.objects.create(**given | values)


def rows_left(documents: Iterable[str]) -> dict[str, int]:
    """Return how many rows of each kind there still are of documents with these ids."""
    ids = list(documents)
    found: Counter[str] = Counter({name: 0 for name, _, _ in ROWS})
    with connection.cursor() as cursor:
        for name, table, which in ROWS:
            cursor.execute(
                f"SELECT count(*) FROM {table} WHERE {which}",  # noqa: S608 from the table of what is removed
                {"documents": ids},
            )
            found[name] += cursor.fetchone()[0]
    return dict(found)
