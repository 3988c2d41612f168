"""Outage: what was done is recorded as soon as PostgreSQL is back."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from agents.models import Step

PAUSE_SECONDS = 0.5
T = TypeVar("T")


def outlast(act: Callable[[], T]) -> T:
    """Return what `act` returns, tried again while PostgreSQL is away.

    For as long as a lease lasts; then it raises what `act` raises. Nobody may hear whether a
    transaction was committed that was under way: `act` must take effect once when done twice.
    """
    until = time.monotonic() + Step.LEASE.total_seconds()
    while True:
        try:
            return act()
        except (OperationalError, InterfaceError):
            if time.monotonic() > until:
                raise
            connection.close()
            time.sleep(PAUSE_SECONDS)
