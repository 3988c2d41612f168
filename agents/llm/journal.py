"""Journal: every call is stored before it is sent, and its reply before it is used.

A step that is delivered twice finds under (step, call number) what it was answered before; an
equal request of the same owner is served from an earlier reply while that is fresh. A call whose
worker died on the way stays counted, as one that may have been paid.
"""

import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import CharField, F, Func, JSONField, Max, Q, Value
from django.db.models.functions import Cast, Concat
from django.utils.timezone import now

from agents.llm.cost import cost, estimate
from agents.llm.outcomes import REPLIED, ModelFailure, Outcome
from agents.llm.requests import Reply, Request, ToolCall, Usage
from agents.models import ModelCall
from agents.names import Status
from agents.steps.step_lease import retry_outage
from knowledge.changes import documents_changed
from knowledge.postgres_text import storable, storable_json
from prompts.prompt import Rendered

# Longer than a call takes that no turn bounds, with its retries and pauses.
UNHEARD_FOR = timedelta(hours=1)
LOST = "Its worker ended before a reply was stored: the provider may bill for it."
STOPPED = "Its turn ended before it: the provider may bill for what it wrote by then."
# What calls are filed under of whose turn nothing more is known.
FORGOTTEN = "forgotten/"
NUMBER_TAKEN = "model_call_once_per_number_of_a_subject"
# What is not known of a call before it ended.
RESULT = (
    "model",
    "provider",
    "outcome",
    "reply",
    "tool_calls",
    "finish_reason",
    "error",
    "attempts",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost",
    "seconds",
    "first_token_seconds",
    "created",
    "response_id",
)
# A call without what was asked and answered.
EMPTIED: dict[str, Any] = {
    "request": {},
    "request_hash": "",
    "mends": "",
    "reply": "",
    "tool_calls": [],
    "error": "",
    "reusable": False,
}
# The outcomes of attempts, by which calls are counted that may have been paid.
WITHOUT_ERRORS = (
    "(SELECT coalesce(jsonb_agg(each - 'error'), '[]')"
    " FROM jsonb_array_elements(%(expressions)s) AS each)"
)
# Of a result, what is no content.
FIGURES = tuple(
    name
    for name in RESULT
    if name not in {"reply", "tool_calls", "finish_reason", "error", "attempts"}
)


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
        return _own_call(entry) or _equal_call(entry)
    finally:
        connection.close()


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


def begin(entry: Entry) -> ModelCall:
    """Store a call that is about to be sent, at the most it can cost; leaves no connection open.

    The commit waits for the disk, and so for the claim of the step, which did not: one that a
    crash of the database forgot would let another worker ask the model at the same time.
    """
    try:
        return retry_outage(partial(_begin, entry, now()))
    finally:
        connection.close()


def _begin(entry: Entry, at: datetime) -> ModelCall:
    lost = ModelCall.objects.filter(subject=entry.subject.name, outcome=Outcome.SENT)
    lost.exclude(created=at).update(outcome=Outcome.LOST, error=LOST)
    model = entry.request.model
    most = estimate(entry.request)
    return _store(
        _row(
            entry,
            model,
            outcome=Outcome.SENT,
            input_tokens=most.input_tokens,
            cost=cost(model, most),
            created=at,
        )
    )


def store_reply(call: ModelCall, reply: Reply, attempts: list[dict[str, Any]]) -> ModelCall:
    """Store the reply to a call before anybody looks at it; leaves no connection open."""
    return _end(
        call,
        reply.usage,
        model=reply.model or call.model,
        outcome=Outcome.OK,
        reply=storable(reply.text),
        tool_calls=[asdict(each) for each in reply.tool_calls],
        finish_reason=reply.finish_reason,
        attempts=attempts,
        seconds=reply.seconds,
        first_token_seconds=reply.first_token_seconds,
        response_id=reply.id,
    )


def store_failure(
    call: ModelCall, failure: ModelFailure, attempts: list[dict[str, Any]]
) -> ModelCall:
    """Store that a call brought no reply."""
    return _end(
        call,
        Usage(),
        outcome=failure.outcome,
        error=storable(str(failure)),
        attempts=attempts,
        seconds=sum(each["seconds"] for each in attempts),
    )


def give_up(call: ModelCall) -> None:
    """Mark a call as lost that was broken off; leaves no connection open."""
    sent = ModelCall.objects.filter(pk=call.pk, outcome=Outcome.SENT)
    try:
        retry_outage(partial(sent.update, outcome=Outcome.LOST, error=STOPPED))
    finally:
        connection.close()


def lose_unheard() -> int:
    """Mark the calls as lost that nobody waits for any more; return how many it was.

    Should one of them be heard of after all, it is stored as any other.
    """
    sent = ModelCall.objects.filter(outcome=Outcome.SENT)
    given_up = ~Q(envelope=None) & ~Q(envelope__status=Status.RUNNING)
    return sent.filter(given_up | Q(created__lt=now() - UNHEARD_FOR)).update(
        outcome=Outcome.LOST, error=LOST
    )


def reply_of(call: ModelCall) -> Reply:
    """Return the reply that a stored call brought, as it arrived."""
    calls = tuple(ToolCall(**each) for each in call.tool_calls)
    return Reply(call.reply, call.finish_reason, model=call.model, tool_calls=calls)


def amend(pk: int, failure: ModelFailure) -> None:
    """Note that the reply of a stored call turned out to be unusable."""
    calls = ModelCall.objects.filter(pk=pk).exclude(subject__startswith=FORGOTTEN)
    calls.update(outcome=failure.outcome, error=storable(str(failure)))
    connection.close()


def _end(call: ModelCall, usage: Usage, **values: Any) -> ModelCall:
    """Write into a call what came of it, whatever it was taken for meanwhile."""
    for name, value in ({"error": "", "created": now()} | values).items():
        setattr(call, name, value)
    call.provider = call.model.rpartition("@")[2]
    try:
        return retry_outage(partial(_complete, call, usage))
    finally:
        connection.close()


def _complete(call: ModelCall, usage: Usage) -> ModelCall:
    call.input_tokens, call.output_tokens = usage.input_tokens, usage.output_tokens
    call.cached_tokens, call.cost = usage.cached_tokens, cost(call.model, usage)
    row = ModelCall.objects.filter(pk=call.pk)
    if not row.filter(subject=call.subject).update(**_values(call, RESULT)):
        # Its turn was forgotten meanwhile: what it cost is kept, and nothing that was said.
        row.update(**_values(call, FIGURES))
    return call


def _values(call: ModelCall, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(call, name) for name in names}


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
    about.update(**EMPTIED, attempts=[])


def forget_turns(turns: Iterable[uuid.UUID]) -> int:
    """Take what was said out of the calls of turns that are forgotten; return how many it was.

    What they cost stays, without turn and user: the day's figures and budgets count it for the
    payer.
    """
    calls = ModelCall.objects.filter(envelope__in=list(turns))
    return calls.update(
        **EMPTIED,
        subject=Concat(Value(FORGOTTEN), Cast("pk", CharField())),
        envelope=None,
        step_number=None,
        documents=[],
        # Behind the slash stands for whom was asked.
        owner=Func(F("owner"), Value("/.*"), Value("/"), function="regexp_replace"),
        attempts=Func(F("attempts"), template=WITHOUT_ERRORS, output_field=JSONField()),
    )
