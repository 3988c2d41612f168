"""Patience: one call with its retries, within the time the turn has left."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils.timezone import now

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply, Request
from agents.llm.transport import OnText, send

# Less than this is no time for a model: what works without one needs it to finish the turn.
LEAST_SECONDS = 1.0


class Failed(Exception):
    """No attempt brought a reply."""

    def __init__(self, failure: ModelFailure, attempts: list[dict[str, Any]]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.attempts = attempts


def obtain(
    request: Request,
    *,
    seconds: float,
    deadline: datetime | None = None,
    on_text: OnText | None = None,
    on_restart: Callable[[], None] | None = None,
) -> tuple[Reply, list[dict[str, Any]]]:
    """Return the reply and the failed attempts before it. Raises Failed."""
    begun = time.monotonic()
    left = (deadline - now()).total_seconds() if deadline else seconds
    if left < LEAST_SECONDS:
        raise Failed(ModelFailure(Outcome.OUT_OF_TIME, "the turn has no time left"), [])
    try:
        return send(request, seconds=min(seconds, left), on_text=on_text), []
    except ModelFailure as failure:
        attempt = {
            "model": request.model,
            "outcome": failure.outcome,
            "seconds": round(time.monotonic() - begun, 3),
            "error": str(failure),
        }
        raise Failed(failure, [attempt]) from failure
