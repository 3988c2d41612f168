"""Envelopes: how a turn starts, goes on after a decision, and ends. Rows only, one transaction."""

import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.dispatch import Signal
from django.utils.timezone import now

from agents.attributes import ADAPTERS, MEMORY, Persona
from agents.decision import ANSWER, Stage
from agents.errors import AgentError
from agents.llm.stops import stop_command
from agents.models import Envelope, Step
from agents.names import Role, Status
from agents.routing import overdue
from agents.steps import faults
from agents.steps.doorbell import ring_command
from agents.steps.events import event_commands, publish, send
from agents.trace import correlation
from agents.words import ENGLISH, Phrase
from knowledge.postgres_text import storable

# Sent with `envelope` inside the transaction that ends it, before that is written: who listens
# takes effect once, too, and may still withhold the answer.
envelope_ending = Signal()
ANSWERED = frozenset({Status.COMPLETED, Status.AWAITING_USER})
# A function of the database, in steps/functions.sql.
END = "SELECT agents_end(%s, %s, %s, %s::jsonb)"


class LostError(AgentError):
    """The worker of this step died on each of its attempts."""


class DeadlineError(AgentError):
    """The turn was not finished before its deadline."""


def start(
    memory: dict[str, Any], *, conversation_id: uuid.UUID, message_id: uuid.UUID, place: int = 0
) -> Envelope:
    """Create the envelope of one user message with its first step, to be rung on commit.

    `memory` holds what agents may know of the conversation, by the names in
    `agents.attributes.MEMORY`; it is kept as it is, so that the turn can be replayed. `place` is
    how many turns the same user has under way: of all that wait, the lowest place goes first.
    """
    checked = {
        name: ADAPTERS[name].dump_python(ADAPTERS[name].validate_python(value), mode="json")
        for name, value in memory.items()
        if name in MEMORY
    }
    assistant = Persona.model_validate(checked.get("assistant", {}))
    identity = uuid.uuid4()
    stream = f"turn:{identity}:events"
    # Before the commit: a manager that looks for steps has the first one as soon as it is there,
    # and its agents tell of themselves. Of a turn that does not come about nobody knows the stream.
    publish(stream, "workflow_start", turn=identity, conversation=conversation_id)
    with transaction.atomic():
        envelope = Envelope.objects.create(
            id=identity,
            conversation_id=conversation_id,
            message_id=message_id,
            memory=checked,
            payload=checked
            | {
                "stage": Stage.START,
                "enabled_routes": [str(route) for route in assistant.routes],
                "mode": "extractive",
            },
            target_list=stream,
            result_list=f"turn:{identity}:result",
            step_count=1,
            target_role=[Role.MANAGER],
            deadline=now() + timedelta(seconds=settings.TURN_DEADLINE_SECONDS),
            traceparent=correlation.current().get("traceparent", ""),
        )
        Step.objects.create(
            envelope=envelope,
            number=1,
            batch=0,
            role=Role.MANAGER,
            stage=Stage.START,
            place=place,
        )
        bell = ring_command(identity, 1, Role.MANAGER)
        _on_commit(partial(send, [bell]))
    return envelope


def conclude(envelope: Envelope, status: Status, phrase: Phrase | None) -> None:
    """End a locked envelope as the manager decided."""
    if phrase:
        _respond(envelope, phrase)
    end(envelope, status)


def end(envelope: Envelope, status: Status, *, error_id: str = "") -> None:
    """End a locked envelope: nothing of it stays open, and who waits for it is told on commit."""
    envelope.status, envelope.error_id, envelope.target_role = status, error_id, []
    envelope_ending.send(Envelope, envelope=envelope)
    with connection.cursor() as cursor:
        payload = json.dumps(envelope.payload)
        cursor.execute(END, [envelope.pk, envelope.status, error_id, payload])
        (mode,) = cursor.fetchone()
    envelope.payload["mode"] = mode
    turn = {"turn": envelope.pk, "status": envelope.status}
    event = event_commands(envelope.target_list, "workflow_complete", **turn, error_id=error_id)
    result = event_commands(envelope.result_list, "result", **turn)
    # An answer is the end of all work on it; anything else may come in the midst of some.
    stop = () if envelope.status in ANSWERED else (stop_command(envelope.pk),)
    _on_commit(partial(send, (*event, *result, *stop)))


def withhold(envelope: Envelope) -> None:
    """Keep what an ending envelope came to from its user; the steps of its trace still have it.

    What was told of an answer on its way is withdrawn.
    """
    if envelope.process_count:
        nothing = {"step": envelope.step_count, "attempt": 1, "text": "", "replaces": True}
        _on_commit(partial(send, event_commands(envelope.target_list, "token", **nothing)))
    envelope.status = Status.WITH_STAFF
    envelope.payload = {
        name: value for name, value in envelope.payload.items() if name not in ANSWER
    }


def quarantine(envelope: Envelope, step: Step, error: Exception) -> None:
    """Set a step aside that cannot succeed and end its turn with an error id for the user."""
    code = faults.record(error, role=step.role, envelope=envelope, step=step.number)
    step.status, step.ended = Step.Status.QUARANTINED, step.end_time()
    step.lease_token = step.lease_until = None
    step.error = step.error or storable(f"{type(error).__name__}: {error}")
    step.save()
    _respond(envelope, Phrase.FAILED, error_id=code)
    end(envelope, Status.FAILED, error_id=code)


def expire(envelope_id: uuid.UUID) -> bool:
    """End a turn whose deadline has passed; False when it has not, has ended, or is locked.

    An answer that was to be read, or written anew, goes out as it is.
    """
    with transaction.atomic():
        unlocked = Envelope.objects.select_for_update(skip_locked=True)
        envelope = unlocked.filter(pk=envelope_id).first()
        if envelope is None or envelope.ended or envelope.deadline >= now():
            return False
        if best := overdue(envelope.payload):
            envelope.payload |= best
            end(envelope, Status.COMPLETED)
            return True
        code = faults.record(DeadlineError(), role="manager", envelope=envelope)
        _respond(envelope, Phrase.EXPIRED, error_id=code)
        end(envelope, Status.EXPIRED, error_id=code)
    return True


def cancel(envelope_id: uuid.UUID) -> bool:
    """End a turn because its user wants no answer any more; False when it had ended before."""
    with transaction.atomic():
        envelope = Envelope.objects.select_for_update().filter(pk=envelope_id).first()
        if envelope is None or envelope.ended:
            return False
        _respond(envelope, Phrase.CANCELLED)
        end(envelope, Status.CANCELLED)
    return True


def _respond(envelope: Envelope, phrase: Phrase, **values: object) -> None:
    language = envelope.payload.get("language", ENGLISH)
    envelope.payload["response"] = phrase.in_language(language, **values)


def _on_commit(act: Callable[[], object]) -> None:
    # Robust: a doorbell that fails must not keep the others from ringing.
    transaction.on_commit(act, robust=True)
