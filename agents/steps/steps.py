"""Steps: claim, perform, finish. The only place that knows about leases and delivery.

A step may be delivered any number of times and takes effect once: whoever claims it holds a
token, and only the holder of the current token can finish it.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import DataError, IntegrityError, connection, transaction
from django.utils.timezone import now

from agents import envelopes
from agents.contract import REGISTRY, Result
from agents.errors import AgentError
from agents.models import Envelope, Step
from agents.names import Role, Status
from agents.steps import events, faults, model_context, shutdown
from agents.steps.doorbell import take_command, wait_command
from agents.steps.events import Command, send
from agents.steps.records import Claim, Conclusion, claim_of, claim_ready, record, record_all
from agents.steps.step_lease import LEASES, WORKER, retry_outage
from agents.tools import toolbox
from agents.tools.toolbox import Toolbox
from agents.trace import correlation
from knowledge.postgres_text import storable

log = logging.getLogger(__name__)

# How many steps are claimed at once; their leases outlast them by far.
AT_ONCE = 32
# Celery's own timers have to run: workers announce every five seconds that they listen.
AWAKE_SECONDS = 2.0
# What the contract let through and the database refuses will be refused again.
REFUSED = (DataError, IntegrityError, ValueError)

Work = Callable[[Claim], Conclusion]
Attempt = tuple[Claim, Conclusion | Exception]


def perform_one_by_one(role: Role, work: Work) -> None:
    """Do one step of the role for the bell that rang, and one for each that hangs there then.

    A bell says that there is something to do; which step is next, the database says: in the order
    of the bells, a user who asks once would wait for all steps of one who asked much before. The
    next bell is taken in the round trip that rings for what follows: a queue that is never empty
    costs nothing of what Celery takes to deliver a message.
    """
    bell = True
    while bell and (claims := claim_ready(role, 1)):
        (claim,) = claims
        with _working(claim):
            outcome = _attempt(claim, work)
        # Asked only now: the worker may have been told to stop meanwhile.
        next_bell = () if shutdown.requested() else (take_command(role),)
        bell = any(_settle(claim, outcome, next_bell))


def perform_in_batches(role: Role, work: Work) -> None:
    """Do every step that is ready for the role, many at a time; for work that is quick.

    It stays awake for a moment: a turn whose agents are quick comes back before Celery could
    deliver the next bell.
    """
    until = time.monotonic() + AWAKE_SECONDS
    while claims := claim_ready(role, AT_ONCE):
        attempts = [(claim, _attempt(claim, work)) for claim in claims]
        if len(claims) == AT_ONCE:
            _settle_all(attempts)
        elif shutdown.requested() or time.monotonic() > until:
            _settle_all(attempts)
            return
        elif not any(_settle_all(attempts, (wait_command(role),))):
            return


def run_agent(claim: Claim) -> Conclusion:
    """Let the agent of the claimed role work on what its contract lets it see."""
    events.publish(
        claim.stream, "agent_start", role=claim.role, step=claim.number, attempt=claim.attempt
    )
    tools = Toolbox.of(claim)
    with model_context.model_of(claim) as llm, toolbox.lend(tools):
        result = REGISTRY[claim.role].perform(claim.payload, llm)
    return Conclusion(result, tools.trajectory())


@contextmanager
def _working(claim: Claim) -> Iterator[None]:
    """Hold the lease and no connection: work may wait for a model much longer than it computes."""
    connection.close()
    with LEASES.renewed(claim.token):
        yield


def _attempt(claim: Claim, work: Work) -> Conclusion | Exception:
    with correlation.about(**claim.names):
        try:
            return work(claim)
        except Exception as error:  # noqa: BLE001 the one broad except: it is recorded
            return error


def _settle(
    claim: Claim, outcome: Conclusion | Exception, then: Sequence[Command] = ()
) -> list[Any]:
    """Finish an attempt or record its failure; return the replies to `then`, if it was sent."""
    with correlation.about(**claim.names):
        if isinstance(outcome, Conclusion):
            try:
                return retry_outage(partial(finish, claim, outcome, then)) or []
            except REFUSED as error:
                outcome = error
        retry_outage(partial(fail, claim, outcome))
    return []


def _settle_all(attempts: list[Attempt], then: Sequence[Command] = ()) -> list[Any]:
    """Settle several, together those that can be; send `then` and return the replies."""
    if len(attempts) == 1:
        return _settle(*attempts[0], then)
    ongoing = [
        (claim, outcome)
        for claim, outcome in attempts
        if isinstance(outcome, Conclusion) and outcome.goes_on
    ]
    finished = _finish_all(ongoing)
    for claim, outcome in attempts:
        if not (finished and isinstance(outcome, Conclusion) and outcome.goes_on):
            _settle(claim, outcome)
    return send(then)


def finish(claim: Claim, conclusion: Conclusion, then: Sequence[Command] = ()) -> list[Any] | None:
    """Record it and what follows from it, ring for that, and return the replies to `then`.

    Returns None, and changes nothing, when the lease was lost to another worker meanwhile or
    the turn has ended.
    """
    if conclusion.decision and conclusion.decision.ends:
        return send(then) if _end(claim, conclusion, conclusion.decision.ends) else None
    commands = record(claim, conclusion)
    if commands is None:
        return None
    return send([*commands, *then])[len(commands) :]


def _finish_all(conclusions: list[tuple[Claim, Conclusion]]) -> bool:
    """Finish several at once; False, and nothing changed, when one of them was refused."""
    try:
        commands = retry_outage(partial(record_all, conclusions))
    except REFUSED:
        return False
    send(commands)
    return True


def _end(claim: Claim, conclusion: Conclusion, status: Status) -> bool:
    phrase = conclusion.decision.phrase if conclusion.decision else None
    with transaction.atomic():
        if record(claim, conclusion) is None:
            return False
        envelopes.conclude(Envelope.objects.get(pk=claim.envelope_id), status, phrase)
    return True


def fail(claim: Claim, error: Exception) -> None:
    """Record a failed attempt: the step is due again later, or was tried often enough.

    Then its turn goes on without it, or fails.
    """
    with transaction.atomic():
        rows = _locked(claim)
        if rows is None:
            return
        envelope, step = rows
        step.error = storable(f"{type(error).__name__}: {error}")
        hopeless = isinstance(error, AgentError) and error.permanent
        is_last = step.attempt >= Step.ATTEMPTS or hopeless
        if is_last and not can_do_without(step):
            envelopes.quarantine(envelope, step, error)
            return
        if not is_last:
            step.postpone()
    if is_last:
        do_without(step, "fault", error)
        return
    log.warning("step %s of %s will be tried again: %s", step.number, envelope.pk, step.error)
    events.publish(claim.stream, "error", role=claim.role, step=claim.number, attempt=claim.attempt)


def can_do_without(step: Step) -> bool:
    """Whether a turn can go on without what this step would give."""
    agent = REGISTRY.get(Role(step.role))
    return bool(agent and agent.absence)


def do_without(step: Step, reason: str, error: Exception) -> bool:
    """Have a turn go on without what a step would have given; `reason` is the agent's word for why.

    False, and nothing changed, where it cannot, or somebody took or ended the step meanwhile.
    """
    agent = REGISTRY.get(Role(step.role))
    if agent is None or agent.absence is None:
        return False
    token = uuid.uuid4()
    # As a claim does it: of two who want it one gets it.
    free = Step.objects.filter(pk=step.pk, status=step.status, lease_token=step.lease_token)
    moment = now()
    lease = {"lease_token": token, "lease_until": moment + Step.LEASE, "worker": WORKER}
    if not free.update(status=Step.Status.RUNNING, started=step.started or moment, **lease):
        return False
    code = faults.record(error, role=step.role, envelope=step.envelope, step=step.number)
    writes = agent.contract.checked(agent.absence(reason, code))
    result = Result(writes, degraded=f"{reason}: {error}")
    return finish(claim_of(step, token), Conclusion(result)) is not None


def _locked(claim: Claim) -> tuple[Envelope, Step] | None:
    """Lock the envelope; None when the lease was lost, or the turn has ended or was forgotten."""
    envelope = Envelope.objects.select_for_update().filter(pk=claim.envelope_id).first()
    if envelope is None or envelope.ended:
        return None
    # The step too: claiming one whose lease lapsed takes no lock of the envelope.
    step = (
        envelope.steps.select_for_update()
        .filter(number=claim.number, lease_token=claim.token, status=Step.Status.RUNNING)
        .first()
    )
    return (envelope, step) if step else None
