"""Manager: the task around the routing table, and the tasks of all other roles."""

from uuid import UUID

from celery import Task, shared_task
from django.conf import settings

from agents.errors import AgentError
from agents.names import Role
from agents.routing import decide
from agents.steps import shutdown
from agents.steps.doorbell import ring
from agents.steps.records import Claim, Conclusion
from agents.steps.steps import perform_in_batches, perform_one_by_one, run_agent


class LoopError(AgentError):
    """The turn went round more often than MAX_PROCESS_COUNT allows."""

    permanent = True


def route(claim: Claim) -> Conclusion:
    """Let the table decide on the whole payload. Raises LoopError."""
    if claim.process_count >= settings.MAX_PROCESS_COUNT:
        raise LoopError
    return Conclusion(decision=decide(claim.payload))


def perform(role: Role) -> None:
    """Do what is ready for the role, as one bell asks for."""
    if role is Role.MANAGER:
        perform_in_batches(role, route)
    else:
        perform_one_by_one(role, run_agent)


def _task(role: Role) -> "Task[[str, int], None]":
    @shared_task(name=role.queue)
    def run(envelope_id: str, number: int) -> None:
        if shutdown.requested():
            # It was delivered while the worker left; another one hears it at once.
            ring(UUID(envelope_id), number, role)
        else:
            perform(role)

    return run


TASKS = {role: _task(role) for role in Role}
