"""workers: runs the processes that do the steps."""

import logging
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import Any

from celery.exceptions import SecurityWarning
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.names import Role
from agents.steps import shutdown, sweeper
from agents.steps.preload import preload
from assistant.celery import app
from assistant.local.processes import python, supervise
from conversations import expiry, gaps, notifications
from knowledge.identifiers import INGEST_QUEUE

SWEEPER, INGEST = "sweeper", "ingest"
NAMES = (*Role, INGEST, SWEEPER)
NICENESS = 10


class Command(BaseCommand):
    """Runs workers: all of them compactly, or one process for each that is named."""

    help = (
        "Run workers. Without names: all in four processes (manager, agents, ingest, sweeper). "
        "With names: one process for each."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add names, --each, --together and --copies."""
        parser.add_argument("name", nargs="*", help=f"of: {', '.join(NAMES)}")
        parser.add_argument("--each", action="store_true", help="all, one process for each")
        parser.add_argument(
            "--together",
            action="store_true",
            help="the named ones (or all) in one process, sharing threads",
        )
        parser.add_argument(
            "--copies",
            type=int,
            default=1,
            metavar="N",
            help="without names: processes of agents (1); each adds the same threads and 250 MB",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Become the worker, or watch over several."""
        names: list[str] = options["name"]
        if unknown := [name for name in names if name not in NAMES]:
            raise CommandError(f"There is no worker {unknown[0]!r}; there are: {', '.join(NAMES)}.")
        if options["together"]:
            names = names or list(NAMES)
        if names == [SWEEPER]:
            sweep()
        elif options["together"] or len(names) == 1:
            consume(names)
        else:
            chosen = names or list(NAMES) if options["each"] else names
            sys.exit(supervise(processes(chosen, copies=options["copies"])))


def processes(names: list[str], *, copies: int = 1) -> dict[str, list[str]]:
    """Return the commands that run these workers apart; all of them compactly for no names.

    Compactly, the manager has a process of its own, so that routing never waits behind work, and so
    has ingest, behind which questions would wait. Python computes on one core per process: `copies`
    of the agents' process use as many.
    """
    if names:
        return {name: command(name) for name in names}
    others = [name for name in NAMES if name not in {Role.MANAGER, INGEST, SWEEPER}]
    agents = {f"agents {copy}": command("--together", *others) for copy in range(2, copies + 1)}
    return {
        Role.MANAGER: command(Role.MANAGER),
        "agents": command("--together", *others),
        **agents,
        INGEST: command(INGEST),
        SWEEPER: command(SWEEPER),
    }


def command(*names: str) -> list[str]:
    """Return the command line of one worker process."""
    return python("workers", *names)


def sweep() -> None:
    """Do what no queue asks for, until told to stop: sweep, tell staff, forget, and gather."""
    notifications.start()
    expiry.start()
    gaps.start()
    sweeper.run()


def consume(names: Sequence[str]) -> None:
    """Listen to the queues of these roles until told to stop; threads as many as configured."""
    if SWEEPER in names:
        names = [name for name in names if name != SWEEPER]
        threading.Thread(target=sweep, name=SWEEPER, daemon=True).start()
    roles = [Role(name) for name in names if name != INGEST]
    if not roles:
        # Somebody waits for an answer, and nobody for a document.
        os.nice(NICENESS)
    shutdown.install()
    # Before anybody hears that this process listens: `up` says then that Docent is ready.
    preload(roles)
    queues = [INGEST_QUEUE if name == INGEST else Role(name).queue for name in names]
    # Celery warns root because of pickle; these workers accept JSON only.
    warnings.simplefilter("ignore", SecurityWarning)
    threads = sum(1 if name == INGEST else settings.ROLE_CONCURRENCY[Role(name)] for name in names)
    # What a manager does is over before a thread has taken it.
    pool = "solo" if roles == [Role.MANAGER] and threads == 1 else "threads"
    app.worker_main(
        [
            "--quiet",
            "worker",
            f"--queues={','.join(queues)}",
            f"--pool={pool}",
            f"--concurrency={threads}",
            f"--hostname={names[0] if len(names) == 1 else 'agents'}-{os.getpid()}@%h",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            f"--loglevel={logging.getLevelName(settings.LOG_LEVEL)}",
        ]
    )
