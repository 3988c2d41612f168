"""bench: measures speed as a ratio to something in the same run, on servers of its own."""

import json
import sys
import time
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from agents import presence
from agents.bench import hops
from agents.names import Role
from assistant.management.commands.workers import consume
from assistant.processes import Child, end, python

START_SECONDS = 60.0


class Command(BaseCommand):
    """Runs one bench."""

    help = "Measure speed. `hops`: a turn of ten agents that do nothing against bare Celery hops."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the benches."""
        benches = parser.add_subparsers(dest="bench", required=True)
        hops_parser = benches.add_parser("hops", help="what durability costs")
        hops_parser.add_argument("--json", action="store_true")
        hops_parser.add_argument("--rounds", type=int, default=30, help="single turns (30)")
        hops_parser.add_argument("--at-once", type=int, default=100, help="turns at once (100)")
        # What a worker process of the bench is started with; not for people.
        hops_parser.add_argument("--worker", choices=("manager", "agents"), help="internal")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print."""
        hops.prepare()
        if options["worker"]:
            _consume(options["worker"])
            return
        console = Console(stderr=True)
        call_command("migrate", verbosity=0)
        children = [
            Child(name, python("bench", "hops", "--worker", name), "cyan")
            for name in ("manager", "agents")
        ]
        for child in children:
            child.begin(console)
        try:
            with console.status("starting two workers") as status:
                _await_workers(children)
                figures = hops.measure(
                    status.update, rounds=options["rounds"], at_once=options["at_once"]
                )
        finally:
            end(child.process for child in children if child.process)
        if options["json"]:
            self.stdout.write(json.dumps(figures))
        else:
            Console().print(_table(figures, options["at_once"]))


def _consume(name: str) -> None:
    roles = [Role.MANAGER] if name == "manager" else [r for r in Role if r is not Role.MANAGER]
    consume([*roles], more_queues=[hops.bare_queue(roles[0])])
    sys.exit()


def _await_workers(children: list[Child]) -> None:
    until = time.monotonic() + START_SECONDS
    while presence.missing():
        died = any(child.process and child.process.poll() is not None for child in children)
        if died or time.monotonic() > until:
            raise CommandError("The workers of the bench did not start.")
        time.sleep(0.1)


def _table(figures: dict[str, Any], at_once: int) -> Table:
    idle, loaded = figures["idle"], figures["loaded"]
    table = Table("", "durable turn", "bare hops", "ratio", title=f"{hops.HOPS} hops, ten agents")
    table.add_row("one turn", f"{idle['ms']} ms", f"{idle['bare_ms']} ms", f"{idle['ratio']}")
    table.add_row(
        f"{at_once} at once",
        f"{loaded['turns_per_s']} turns/s",
        f"{loaded['bare_turns_per_s']} turns/s",
        f"{loaded['ratio']}",
    )
    return table
