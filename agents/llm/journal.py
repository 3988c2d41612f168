"""Journal: every finished call is stored before its reply is used, and found again.

A step that is delivered twice finds under (step, call number) what it was answered before; an
equal request of the same owner is served from an earlier reply while that is fresh.
"""

from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Max, Q
from django.utils.timezone import now

from agents.llm.cost import cost
from agents.llm.outcomes import REPLIED, ModelFailure, Outcome
from agents.llm.requests import Reply, Request, ToolCall, Usage
from agents.models import ModelCall
from agents.steps.step_lease import retry_outage
from knowledge.changes import documents_changed
from knowledge.postgres_text import storable, storable_json
from prompts.prompt import Rendered

# A commit that writes to the log waits until the log is on the disk, with all before it.
ON_DISK = "SELECT pg_logical_emit_message(true, 'docent', '')"
NUMBER_TAKEN = "model_call_once_per_number_of_a_subject"


@dataclass(frozen=True)
class Subject:
    """What calls are made for: a step of a turn, or a document."""

    name: str
    role: str
    owner: str = ""
    key: str = ""  # whose budget pays, beside the owner's
    envelope_id: Any = None
    step_number: int | None = None


@dataclass(frozen=True)
class Entry:
    """One call about to be made: its place, what is asked, and what tells it apart."""

    subject: Subject
    number: int
    prompt: Rendered
    request: Request
    digest: str
    documents: tuple[str, ...] = ()
    fresh: timedelta = timedelta(0)  # how old a reply may be that is used again
    used: tuple[int, ...] = ()  # ids of the calls whose replies were used already
    mends: str = ""  # the digest of the request whose reply this one mends


def find(entry: Entry) -> ModelCall | None:
    """Return the finished call that answers this entry: its own from before, or an equal one.

    Leaves no connection open.
    """
    try:
        call = _own_call(entry) or _equal_call(entry)
        if call is None:
            _remember_the_claim()
        return call
    finally:
        connection.close()


def _remember_the_claim() -> None:
    """Have all that was committed so far outlive a crash of the database.

    Claims don't wait for the disk. One that was forgotten would let another worker ask the model
    at the same time.
    """
    with connection.cursor() as cursor:
        cursor.execute(ON_DISK)


def _own_call(entry: Entry) -> ModelCall | None:
    # Looked for at every attempt: which one it is, a crash of the database may have forgotten.
    calls = ModelCall.objects.filter(
        subject=entry.subject.name, request_hash=entry.digest, outcome__in=REPLIED
    )
    return calls.exclude(pk__in=entry.used).first()


def _equal_call(entry: Entry) -> ModelCall | None:
    if not entry.fresh:
        return None
    # Whoever got a mended reply to this question got the right one.
    calls = ModelCall.objects.filter(
        Q(request_hash=entry.digest) | Q(mends=entry.digest),
        owner=entry.subject.owner,
        reusable=True,
        outcome=Outcome.OK,
        cached_from=None,
        created__gt=now() - entry.fresh,
    )
    call = calls.order_by("-created").first()
    if call is None:
        return None
    return _store(
        _row(
            entry,
            call.model,
            outcome=Outcome.OK,
            reply=call.reply,
            tool_calls=call.tool_calls,
            finish_reason=call.finish_reason,
            cached_from=call,
            cost=0,
        )
    )


def store_reply(entry: Entry, reply: Reply, attempts: list[dict[str, Any]]) -> ModelCall:
    """Store a reply before anybody looks at it; leaves no connection open."""
    return _store_and_close(
        entry,
        reply.model or entry.request.model,
        outcome=Outcome.OK,
        reply=storable(reply.text),
        tool_calls=[asdict(each) for each in reply.tool_calls],
        finish_reason=reply.finish_reason,
        attempts=attempts,
        seconds=reply.seconds,
        first_token_seconds=reply.first_token_seconds,
        **_spent(reply.model or entry.request.model, reply.usage),
    )


def store_failure(entry: Entry, failure: ModelFailure, attempts: list[dict[str, Any]]) -> ModelCall:
    """Store a call that brought no reply."""
    return _store_and_close(
        entry,
        entry.request.model,
        outcome=failure.outcome,
        error=storable(str(failure)),
        attempts=attempts,
        seconds=sum(each["seconds"] for each in attempts),
    )


def reply_of(call: ModelCall) -> Reply:
    """Return the reply that a stored call brought, as it arrived."""
    calls = tuple(ToolCall(**each) for each in call.tool_calls)
    return Reply(call.reply, call.finish_reason, model=call.model, tool_calls=calls)


def amend(pk: int, failure: ModelFailure) -> None:
    """Note that the reply of a stored call turned out to be unusable."""
    ModelCall.objects.filter(pk=pk).update(outcome=failure.outcome, error=storable(str(failure)))
    connection.close()


def _store_and_close(entry: Entry, model: str, **values: Any) -> ModelCall:
    try:
        return retry_outage(partial(_store, _row(entry, model, **values)))
    finally:
        connection.close()


def _row(entry: Entry, model: str, **values: Any) -> ModelCall:
    subject = entry.subject
    return ModelCall(
        subject=subject.name,
        number=entry.number,
        envelope_id=subject.envelope_id,
        step_number=subject.step_number,
        role=subject.role,
        owner=subject.owner,
        key=subject.key,
        prompt=entry.prompt.name,
        prompt_hash=entry.prompt.hash,
        model=model,
        provider=model.rpartition("@")[2],
        request=storable_json(entry.request.as_json()),
        request_hash=entry.digest,
        mends=entry.mends,
        documents=list(entry.documents),
        **values,
    )


def _store(row: ModelCall) -> ModelCall:
    """Insert the row under its number, or the next free one when another call has it.

    Another attempt at the same step may be storing its calls at the same time. A row that is
    there already was stored by a transaction whose end nobody heard.
    """
    calls = ModelCall.objects.filter(subject=row.subject)
    while True:
        row.pk = None
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            if NUMBER_TAKEN not in str(error):
                raise
            stored = calls.filter(request_hash=row.request_hash, created=row.created).first()
            if stored:
                return stored
            row.number = calls.aggregate(last=Max("number"))["last"] + 1
        else:
            return row


def _spent(model: str, usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": cost(model, usage),
    }


def document_subject(digest: str) -> str:
    """Return what calls made for a document's text are filed under."""
    return f"document/{digest}"


def register() -> None:
    """Listen to changes of documents."""
    documents_changed.connect(forget)


def forget(sender: object, documents: list[str], unsaid: list[str], **_: Any) -> None:
    """Take calls that quoted a document out of the cache; empty those made for a deleted one.

    What a turn was answered stays in its trace, and what a call cost in the bill.
    """
    quoting = ModelCall.objects.filter(reusable=True, documents__overlap=documents)
    quoting.update(reusable=False)
    about = ModelCall.objects.filter(subject__in=[document_subject(digest) for digest in unsaid])
    emptied: dict[str, Any] = {"reply": "", "tool_calls": [], "error": "", "attempts": []}
    about.update(reusable=False, request={}, request_hash="", mends="", **emptied)
