"""Steps: claim, perform, finish. The only place that knows about leases and delivery.

A step may be delivered any number of times and takes effect once: whoever claims it holds a
token, and only the holder of the current token can finish it.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import DataError, IntegrityError, connection, transaction

from agents import envelopes
from agents.contract import REGISTRY
from agents.errors import AgentError
from agents.models import Envelope, Step
from agents.names import Role, Status
from agents.steps import events, model_context, shutdown, step_lease
from agents.steps.doorbell import take, wait
from agents.steps.events import Command, send
from agents.steps.records import Claim, Outcome, claim_ready, record, record_all
from agents.steps.step_lease import outlast
from knowledge.postgres_text import storable

__all__ = ("claim_ready", "fail", "finish", "perform_ready", "run_agent", "work_off")

log = logging.getLogger(__name__)

# How many steps are taken at once; their leases outlast them by far.
AT_ONCE = 32
# Celery's own timers have to run: workers leave word that they listen every five seconds.
AWAKE_SECONDS = 2.0
# What the contract let through and the database refuses will be refused again.
REFUSED = (DataError, IntegrityError, ValueError)

Work = Callable[[Claim], Outcome]


def work_off(role: Role, work: Work) -> None:
    """Do one step of the role for the bell that rang, and one for each that hangs there then.

    A bell says that there is something to do; which step is next, the database says: in the order
    of the bells, a user who asks once would wait for all steps of one who asked much before. The
    next bell is taken in the round trip that rings for what follows: a queue that is never empty
    costs nothing of what Celery takes to deliver a message.
    """
    rung = True
    while rung and (taken := claim_ready(role, 1)):
        (held,) = taken
        with _away(held):
            came = _attempt(held, work)
        # Asked only now: the worker may have been told to stop meanwhile.
        rung = any(_settle(held, came, () if shutdown.told() else (take(role),)))


def perform_ready(role: Role, work: Work) -> None:
    """Do every step that is ready for the role, many at a time; for work that is quick.

    It stays awake for a moment: a turn whose agents are quick comes back before Celery could
    deliver the next bell.
    """
    until = time.monotonic() + AWAKE_SECONDS
    while taken := claim_ready(role, AT_ONCE):
        came = [(held, _attempt(held, work)) for held in taken]
        if len(taken) == AT_ONCE:
            _settle_all(came)
        elif shutdown.told() or time.monotonic() > until:
            _settle_all(came)
            return
        elif not any(_settle_all(came, (wait(role),))):
            return


def _attempt(held: Claim, work: Work) -> Outcome | Exception:
    try:
        return work(held)
    except Exception as error:  # noqa: BLE001 the one broad except: it is recorded
        return error


def _settle_all(
    came: list[tuple[Claim, Outcome | Exception]], then: Sequence[Command] = ()
) -> list[Any]:
    """Settle several, together those that can be; send `then` and return the replies."""
    if len(came) == 1:
        return _settle(*came[0], then)
    going = [(held, what) for held, what in came if isinstance(what, Outcome) and what.goes_on]
    together = _finish_all(going)
    for held, what in came:
        if not (together and isinstance(what, Outcome) and what.goes_on):
            _settle(held, what)
    return send(then)


def _settle(held: Claim, came: Outcome | Exception, then: Sequence[Command] = ()) -> list[Any]:
    if isinstance(came, Outcome):
        try:
            return outlast(partial(finish, held, came, then)) or []
        except REFUSED as error:
            came = error
    outlast(partial(fail, held, came))
    return []


@contextmanager
def _away(held: Claim) -> Iterator[None]:
    connection.close()
    with step_lease.STEPS.renewed(held.token):
        yield


def run_agent(held: Claim) -> Outcome:
    """Let the agent of the claimed role work on what its contract lets it see."""
    events.publish(
        held.stream, "agent_start", role=held.role, step=held.number, attempt=held.attempt
    )
    with model_context.about(held) as llm:
        return Outcome(done=REGISTRY[held.role].perform(held.payload, llm))


def finish(held: Claim, outcome: Outcome, then: Sequence[Command] = ()) -> list[Any] | None:
    """Record the outcome and what follows from it, ring for it, and return the replies to `then`.

    Returns None, and changes nothing, when the lease was lost to another worker meanwhile or
    the turn has ended.
    """
    if outcome.decision and outcome.decision.ends:
        return send(then) if _end(held, outcome, outcome.decision.ends) else None
    following = record(held, outcome)
    if following is None:
        return None
    return send([*following, *then])[len(following) :]


def _finish_all(came: list[tuple[Claim, Outcome]]) -> bool:
    """Finish several at once; False, and nothing changed, when one of them was refused."""
    try:
        following = outlast(partial(record_all, came))
    except REFUSED:
        return False
    send(following)
    return True


def _end(held: Claim, outcome: Outcome, status: Status) -> bool:
    says = outcome.decision.says if outcome.decision else None
    with transaction.atomic():
        if record(held, outcome) is None:
            return False
        envelopes.conclude(Envelope.objects.get(pk=held.envelope_id), status, says)
    return True


def fail(held: Claim, error: Exception) -> None:
    """Record a failed attempt: the step is due again later, or was tried often enough."""
    with transaction.atomic():
        locked = _locked(held)
        if locked is None:
            return
        envelope, step = locked
        step.error = storable(f"{type(error).__name__}: {error}")
        hopeless = isinstance(error, AgentError) and error.permanent
        if step.attempt >= Step.ATTEMPTS or hopeless:
            envelopes.quarantine(envelope, step, error)
            return
        step.postpone()
    log.warning("step %s of %s will be tried again: %s", step.number, envelope.pk, step.error)
    events.publish(held.stream, "error", role=held.role, step=held.number, attempt=held.attempt)


def _locked(held: Claim) -> tuple[Envelope, Step] | None:
    """Lock the envelope; None when the lease was lost, or the turn has ended or was forgotten."""
    envelope = Envelope.objects.select_for_update().filter(pk=held.envelope_id).first()
    if envelope is None or envelope.ended:
        return None
    # The step too: claiming one whose lease lapsed takes no lock of the envelope.
    step = (
        envelope.steps.select_for_update()
        .filter(number=held.number, lease_token=held.token, status=Step.Status.RUNNING)
        .first()
    )
    return (envelope, step) if step else None
