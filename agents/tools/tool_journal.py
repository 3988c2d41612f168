"""Tool journal: where calls of tools are written down, and found when their step is done again."""

import hashlib
import json
import uuid
from collections.abc import Collection
from functools import partial
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from agents.models import Step, ToolRun
from agents.steps.step_lease import LapsedError, retry_outage

KEY_TAKEN = "tool_run_once_per_call_of_a_step"
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
# The server ends what goes on after its time, so that nobody waits for its locks.
LIMITS = """SELECT set_config('statement_timeout', %(ms)s, true),
    set_config('idle_in_transaction_session_timeout', %(ms)s, true)"""


def key_of(*parts: Any) -> str:
    """Return the SHA-256 of JSON values, in hex."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def find(keys: Collection[str], effects: Collection[str]) -> list[ToolRun]:
    """Return the rows of calls that were made before, and of effects the turn already had.

    Leaves no connection open.
    """
    rows = ToolRun.objects.filter(Q(key__in=keys) | Q(effect_key__in=effects))
    try:
        return retry_outage(lambda: list(rows.all()))
    finally:
        connection.close()


def effect(effect_key: str) -> ToolRun | None:
    """Return the row of an effect; whoever else is about to have it waits until we are done.

    Within a transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [effect_key])
    return ToolRun.objects.filter(effect_key=effect_key).first()


def limit(seconds: float) -> None:
    """Let the transaction go on for so many seconds, as far as the database can tell."""
    milliseconds = str(max(1, int(1000 * seconds)))
    with connection.cursor() as cursor:
        cursor.execute(LIMITS, {"ms": milliseconds})


def require_step(token: uuid.UUID) -> None:
    """Raise LapsedError unless the step is still ours, and stays so until we commit.

    Nobody can take it, and nobody can cancel the turn, in between.
    """
    step = Step.objects.select_for_update(no_key=True).filter(
        lease_token=token, status=Step.Status.RUNNING
    )
    if not step.exists():
        raise LapsedError


def store(row: ToolRun) -> ToolRun:
    """Insert the row; return the one that is there already under its key. Waits outages out."""
    return retry_outage(partial(_store, row))


def _store(row: ToolRun) -> ToolRun:
    row.pk = None
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if KEY_TAKEN not in str(error):
            raise
        return ToolRun.objects.get(key=row.key)
    return as_stored(row)


def as_stored(row: ToolRun) -> ToolRun:
    """Return the row as it will be found: JSON comes back from PostgreSQL in another order.

    What a model is told of it must be the same, or a step that is done again asks anew.
    """
    row.refresh_from_db(fields=["arguments", "result"])
    return row
