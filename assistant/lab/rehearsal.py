"""Rehearsal: the real workers for the time of a measurement, asking a model server of ours."""

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from rich.console import Console

from agents.steps import presence
from assistant.lab.model_server import ModelServer, Script, serving
from assistant.local.processes import Child, end
from assistant.management.commands.workers import processes
from knowledge.errors import KnowledgeError

COLLECTION = "docent"
START_SECONDS = 120.0
LOOK_SECONDS = 0.1
CACHES = tuple(f"CACHE_{kind}_SECONDS" for kind in ("MODEL", "TRANSLATION", "QUALITY", "SEARCH"))
WITHOUT_CACHES = dict.fromkeys(CACHES, "0")
# What the workers of a rehearsal are started with.
ENVIRONMENT = {
    "GEN_MODEL": "fake@rehearsal",
    "SECOND_MODEL": "",
    "ENRICHMENT_MODEL": "none",
}


class NoWorkers(KnowledgeError):
    """The workers to be measured did not start."""


@contextmanager
def rehearsing(
    script: Script, *, cached: bool = False, routes: Sequence[str] = ("documentation", "fallback")
) -> Iterator[ModelServer]:
    """Run the compact layout on Docent's own documentation for the time of the block.

    Nothing is cached unless asked for. Raises NoWorkers.
    """
    # What is printed is for who watches; the figures are for programs.
    with redirect_stdout(sys.stderr):
        call_command("ingest", str(settings.BASE_DIR / "docs"), collection=COLLECTION)
    # Who begins a turn says which routes are open.
    settings.ROUTES = list(routes)
    with serving(script) as server:
        caches = {} if cached else WITHOUT_CACHES
        environment = ENVIRONMENT | caches | {"ROUTES": ",".join(routes)}
        os.environ.update(environment, REHEARSAL_BASE_URL=server.base_url)
        with working(processes([])):
            yield server


@contextmanager
def working(commands: Mapping[str, list[str]]) -> Iterator[list[Child]]:
    """Run these commands for the time of the block, which begins when every queue is listened to.

    Raises NoWorkers when one of them dies before that, or it takes too long.
    """
    console = Console(stderr=True)
    children = [Child(name, command, "cyan") for name, command in commands.items()]
    for child in children:
        child.begin(console)
    try:
        _await_consumers(children)
        yield children
    finally:
        end(child.process for child in children if child.process)


def _await_consumers(children: list[Child]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while missing := presence.missing_roles():
        died = any(child.process and child.process.poll() is not None for child in children)
        if died or time.monotonic() > deadline:
            raise NoWorkers(f"No worker came up for: {', '.join(missing)}.")
        time.sleep(LOOK_SECONDS)


def cpu_seconds(children: Sequence[Child]) -> float | None:
    """Return the CPU time these processes have used; None without any, or where none can be read.

    Linux: fields 14 and 15 of /proc/<pid>/stat, proc_pid_stat(5), in ticks.
    """
    ticks = 0
    for child in children:
        try:
            stat = Path(f"/proc/{child.process.pid if child.process else 0}/stat").read_text()
        except OSError:
            return None
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK") if children else None


def free_port() -> int:
    """Return a port of this machine that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
