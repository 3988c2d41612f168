"""Flight: everything `up` runs, with a model server in a process of its own, for `bench inflight`.

The model server stands for the world outside: what it needs is not weighed.
"""

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from agents import presence
from agents.bench import inflight
from agents.bench.inflight import Plan
from assistant.embedded import state_folder
from assistant.management.commands.workers import processes
from assistant.processes import Child, end, python

START_SECONDS = 120.0
# Who is weighed beside the workers and the web process, by the files that hold their numbers.
SERVERS = ("postgres", "redis")


def measure(plan: Plan, console: Console) -> dict[str, Any]:
    """Return the figures of a flight. Raises TimeoutError when the workers don't come up."""
    with console.status("starting everything") as status, _models(plan) as models:
        os.environ.update(plan.environment(_line(models)))
        _ingest()
        with _everything(plan, console) as children:
            return inflight.run(
                plan,
                lambda: dict(json.loads(_line(models, ask=True))),
                lambda: _numbers(children),
                status.update,
            )


@contextmanager
def _models(plan: Plan) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(  # noqa: S603 our own command line
        python("bench", "inflight", "--serve", "--latency", str(plan.latency)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _line(process: "subprocess.Popen[str]", *, ask: bool = False) -> str:
    if process.stdin is None or process.stdout is None:
        raise ValueError("The model server has no pipes.")
    if ask:
        process.stdin.write("\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def _ingest() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(inflight.PAGES):
            Path(folder, f"{number}.md").write_text(page, encoding="utf-8")
        # In a process of its own: one that holds the embedding model is not fit to be forked.
        subprocess.run(  # noqa: S603 our own command line
            python("ingest", folder, "--collection", inflight.COLLECTION),
            check=True,
            capture_output=True,
        )


@contextmanager
def _everything(plan: Plan, console: Console) -> Iterator[list[Child]]:
    web = {"web": python("serve", "--port", str(_free_port()))}
    children = [
        Child(name, line, "cyan")
        for name, line in (processes([], copies=plan.copies) | web).items()
    ]
    for child in children:
        child.begin(console)
    try:
        until = time.monotonic() + START_SECONDS
        while presence.missing():
            if time.monotonic() > until:
                raise TimeoutError("The workers of the bench did not start.")
            time.sleep(0.2)
        yield children
    finally:
        end(child.process for child in children if child.process)


def _numbers(children: list[Child]) -> list[int]:
    written = [Path(state_folder()) / f"{name}.pid" for name in SERVERS]
    servers = [int(path.read_text()) for path in written if path.exists()]
    return servers + [child.process.pid for child in children if child.process]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
