"""Faults: gives an error an id that the user sees and the operator finds."""

import logging
import traceback
import uuid

from django.utils.timezone import now

from agents.models import Envelope, Fault
from agents.trace import correlation
from knowledge.postgres_text import storable

log = logging.getLogger(__name__)

PREFIXES = {"response": "RSP", "manager": "MGR", "quality": "QLT", "guardrails": "GRD"}


def record(
    error: BaseException, *, role: str, envelope: Envelope | None = None, step: int | None = None
) -> str:
    """Store `error` with its traceback; return its id, e.g. `RSP-2026-11-21-00042`."""
    fault = Fault.objects.create(
        code=f"new-{uuid.uuid4().hex[:24]}",
        envelope=envelope,
        role=role[:24],
        step_number=step,
        summary=storable(f"{type(error).__name__}: {error}"[:2000]),
        details=storable("".join(traceback.format_exception(error))),
    )
    prefix = PREFIXES.get(role, role[:3].upper())
    fault.code = f"{prefix}-{now():%Y-%m-%d}-{fault.pk:05d}"
    fault.save(update_fields=["code"])
    with correlation.about(**_names(role, envelope, step)):
        # Its traceback is kept: people who read the line find it there.
        said = {"error_id": fault.code, "fault": error}
        log.error("%s %s", fault.code, fault.summary, extra=said)
    return fault.code


def _names(role: str, envelope: Envelope | None, step: int | None) -> dict[str, object]:
    names: dict[str, object] = {"role": role}
    if envelope:
        names |= {"turn": envelope.pk, "conversation": envelope.conversation_id}
    return names | ({"step": step} if step else {})
