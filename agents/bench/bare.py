"""Bare: as many Celery hops as a turn has, to and fro between two processes, and nothing else.

Sent and acknowledged by Celery itself, late, as whoever wants no task lost sets it up.
"""

import time
import uuid

from celery import Celery, current_app

from agents import events
from agents.queues import queue

HOPS = 21
QUEUES = ("bench.one", "bench.other")
DONE = "bench:done:"
THREADS = 8
PATIENCE_SECONDS = 120.0

app = Celery("bare", set_as_current=False)
app.conf.update(
    task_queues=[queue(name) for name in QUEUES],
    task_default_queue=QUEUES[0],
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"priority_steps": [0]},
)


@app.task(name="bench.hop")
def hop(run: str, left: int) -> None:
    """Send the next hop to the other process, or say that this was the last."""
    if left:
        _send(run, left - 1)
    else:
        events.connection().rpush(DONE + run, 1)


def _send(run: str, left: int) -> None:
    app.send_task("bench.hop", args=[run, left], queue=QUEUES[left % 2])


def prepare() -> None:
    """Use the broker of this process."""
    app.conf.update(broker_url=current_app.conf.broker_url)


def consume(name: str) -> None:
    """Do the hops of one queue until told to stop."""
    app.worker_main(
        [
            "--quiet",
            "worker",
            f"--queues={name}",
            "--pool=threads",
            f"--concurrency={THREADS}",
            f"--hostname={name}@%h",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel=warning",
        ]
    )


def run(count: int) -> float:
    """Run `count` chains at once; return the seconds until all have ended."""
    name = uuid.uuid4().hex
    begin = time.perf_counter()
    for _ in range(count):
        _send(name, HOPS - 1)
    for _ in range(count):
        _await_end(name)
    return time.perf_counter() - begin


def _await_end(name: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while events.connection().blpop([DONE + name], timeout=5) is None:
        if time.monotonic() > until:
            raise TimeoutError("a chain of bare hops did not end")
