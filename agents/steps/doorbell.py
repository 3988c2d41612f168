"""Doorbell: tells a role's queue that a step is ready; what there is to do stands in PostgreSQL.

A bell is a task message as Celery writes it (its protocol 2, in a list of Redis), put together
here so that it can travel with other commands. Celery's own way of sending takes longer than
claiming and finishing a step together.
"""

import json
import uuid

from agents.names import Role
from agents.steps.events import Command, send

WAIT_SECONDS = 0.05
# A manager takes all that is ready, so a bell that still hangs there rings for this step too.
PUSH_TO_EMPTY_QUEUE = (
    "if redis.call('LLEN', KEYS[1]) == 0 then redis.call('LPUSH', KEYS[1], ARGV[1]) end"
)


def ring(envelope_id: uuid.UUID, number: int, role: Role) -> None:
    """Send two ids, nothing else. A bell nobody hears is rung again by the sweeper."""
    send([ring_command(envelope_id, number, role)])


def ring_command(envelope_id: uuid.UUID, number: int, role: Role) -> Command:
    """Return the command that rings for a step."""
    message = _message(role.queue, [str(envelope_id), number])
    if role is Role.MANAGER:
        return ("EVAL", PUSH_TO_EMPTY_QUEUE, 1, role.queue, message)
    return ("LPUSH", role.queue, message)


def take_command(role: Role) -> Command:
    """Return the command that takes the next bell of the role's queue, as Celery would."""
    return ("RPOP", role.queue)


def wait_command(role: Role) -> Command:
    """Return the command that takes the next bell if one rings within a moment."""
    return ("BRPOP", role.queue, str(WAIT_SECONDS))


def _message(task: str, args: list[str | int]) -> str:
    identity = str(uuid.uuid4())
    return json.dumps(
        {
            "body": json.dumps([args, {}, {}]),
            "content-type": "application/json",
            "content-encoding": "utf-8",
            "headers": {"lang": "py", "task": task, "id": identity},
            "properties": {
                "correlation_id": identity,
                "delivery_tag": identity,
                "delivery_info": {"exchange": "", "routing_key": task},
                "delivery_mode": 2,
                "priority": 0,
            },
        }
    )
