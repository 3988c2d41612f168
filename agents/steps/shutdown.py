"""Shutdown: a worker that is told to stop takes nothing new, finishes what it can, and hands back
the rest.

Celery waits for its threads without end. A thread that waits for a model can't be stopped, so
when the time is over its step is made ready again and the process ends around it.
"""

import logging
import os
import threading
import time
from typing import Any

from celery.signals import worker_shutting_down
from django.db import Error

from agents.steps import step_lease

log = logging.getLogger(__name__)

# Less than whoever asked waits before it kills: `up` 10 seconds, most supervisors 30.
GRACE_SECONDS = 8.0

_requested = threading.Event()


def install() -> None:
    """Have this process end within the grace once Celery tells it to stop."""
    worker_shutting_down.connect(_request, weak=False)
    # Begun here: a signal may come while the main thread is in the middle of anything.
    threading.Thread(target=_end_process, name="shutdown", daemon=True).start()


def requested() -> bool:
    """Whether this process was told to stop, and takes nothing new."""
    return _requested.is_set()


def _request(**_: Any) -> None:
    _requested.set()


def _end_process() -> None:
    _requested.wait()
    time.sleep(GRACE_SECONDS)
    try:
        count = step_lease.hand_back()
    except Error as error:
        log.warning("PostgreSQL is away, unfinished steps wait for their leases: %s", error)
    else:
        log.warning("handed back %s unfinished steps", count)
    os._exit(0)
