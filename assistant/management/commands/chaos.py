"""chaos: kills parts of a running Docent under load, and counts what went wrong."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from argparse import ArgumentTypeError
from io import StringIO
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from rich.console import Console

from assistant.health import missing_parts
from assistant.lab import chaos_report, reply_kills
from assistant.lab.chaos_load import SESSION, Failing, Load, under_way
from assistant.lab.chaos_report import CommittedFault, Recovery, Tally, recoveries, tally
from assistant.lab.chaos_stack import Stack, commit_fault, running
from assistant.lab.model_server import ModelServer, serving
from assistant.lab.rehearsal import WITHOUT_CACHES, free_port
from assistant.local.processes import python
from assistant.local.servers import POSTGRES, REDIS
from conversations.models import Conversation, Message

COLLECTION = "docent"
SERVERS = (POSTGRES, REDIS)
READY_SECONDS = 120.0
# A turn may take its deadline after the last fault, and the sweeper a moment to say so.
AFTER_SECONDS = 180.0
ENVIRONMENT = {
    "GEN_MODEL": "fake@scripted",
    "ENRICHMENT_MODEL": "none",
    "ROUTES": "documentation,fallback",
    "MAX_TURNS_PER_KEY": "1000",
    "MAX_REQUESTS_PER_KEY": "0",
    "MAX_REQUESTS_PER_ADDRESS": "0",
    **WITHOUT_CACHES,
}


class Command(BaseCommand):
    """Runs a stack on servers of its own, keeps it under load, and breaks it."""

    help = "Kill parts of a running Docent under load and count what was lost or done twice."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add how long, how much at once, what is written, and --after-replies."""
        parser.add_argument("--minutes", type=_positive, default=10.0, help="how long (10)")
        parser.add_argument("--turns", type=int, default=1_000_000, help="begin at most so many")
        parser.add_argument("--at-once", type=int, default=24, help="turns under way (24)")
        parser.add_argument("--pause", type=_positive, default=6.0, help="seconds between faults")
        parser.add_argument("--seed", type=int, default=None, help="repeats a run's chances")
        parser.add_argument("--write", type=Path, metavar="FILE", help="e.g. docs/reliability.md")
        parser.add_argument("--json", action="store_true")
        parser.add_argument(
            "--after-replies",
            nargs="*",
            choices=reply_kills.PROMPTS,
            metavar="PROMPT",
            help="instead: kill a worker 0, 50 and 200 ms after a reply to each prompt (all)",
        )
        parser.add_argument("--times", type=int, default=1, help="of each, after replies (1)")
        servers = parser.add_argument_group("servers that are not Docent's own")
        servers.add_argument(
            "--given",
            action="store_true",
            help="use DATABASE_URL and REDIS_URL: an empty database, and a Redis that is flushed",
        )
        for name in SERVERS:
            servers.add_argument(
                f"--restart-{name}", default="", metavar="COMMAND", help=f"restarts {name}"
            )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, count, print; exit with 1 when something went wrong that must not."""
        seed = (
            options["seed"]
            if options["seed"] is not None
            else random.SystemRandom().getrandbits(32)
        )
        if options["given"] and not {"DATABASE_URL", "REDIS_URL"} <= os.environ.keys():
            raise CommandError("--given needs both DATABASE_URL and REDIS_URL.")
        console = Console(stderr=True)
        console.print(f"Seed {seed}")
        call_command("migrate", verbosity=0, interactive=False)
        if Conversation.objects.exists():
            raise CommandError("The database holds conversations. Give chaos an empty one.")
        if options["after_replies"] is not None:
            sys.exit(0 if self._kill_after_replies(options, console) else 1)
        with serving(Failing(random.Random(seed)).reply) as server:  # noqa: S311 it has to repeat
            counts, recovered = self._run(options, seed, server, console)
        report = chaos_report.Run(counts, recovered, seed, options["minutes"])
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), indent=2))
        else:
            Console().print(report.tables())
        if options["write"]:
            options["write"].write_text(report.page(), encoding="utf-8")
            console.print(f"Wrote {options['write']}")
        sys.exit(0 if counts.holds else 1)

    def _kill_after_replies(self, options: dict[str, Any], console: Console) -> bool:
        """Print what became of the calls; return whether every one is counted."""
        prompts = options["after_replies"] or reply_kills.PROMPTS
        kills = reply_kills.measure(
            prompts, reply_kills.MILLISECONDS, options["times"], console.print
        )
        if options["json"]:
            self.stdout.write(json.dumps(reply_kills.as_json(kills), indent=2))
        else:
            Console().print(reply_kills.table(kills))
        return reply_kills.holds(kills)

    def _run(
        self,
        options: dict[str, Any],
        seed: int,
        server: ModelServer,
        console: Console,
    ) -> tuple[Tally, list[Recovery]]:
        os.environ.update(ENVIRONMENT, SCRIPTED_BASE_URL=server.base_url)
        port = free_port()
        key = _prepare()
        # One for each thread that draws, so that what one does changes nothing for the other.
        asking, breaking = random.Random(seed + 1), random.Random(seed + 2)  # noqa: S311 it has to repeat
        restarts = {name: options[f"restart_{name}"] for name in SERVERS if options["given"]}
        with running(port, restarts, console) as stack:
            _await_readiness(console)
            load = Load(port, key, COLLECTION, options["at_once"], options["turns"], asking)
            loading = threading.Thread(target=_load, args=(load,), daemon=True)
            loading.start()
            faults = _break(stack, options, breaking, loading, console)
            load.ending.set()
            loading.join()
            console.print(f"{len(load.turns)} turns accepted; waiting for the last to end")
            _await_readiness(console)
            turns = load.turns | _unheard_turns()
            _await_end(list(turns))
            return tally(turns, load.refused, server.ledger), recoveries(turns, faults)


def _prepare() -> str:
    """Ingest the documentation and return a key for the load."""
    # In a process of its own, so that this one never holds the embedding model.
    subprocess.run(  # noqa: S603 our own command line
        python("ingest", str(settings.BASE_DIR / "docs"), "--collection", COLLECTION),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    output = StringIO()
    call_command("apikey", "create", "chaos", "--staff", stdout=output)
    return output.getvalue().strip()


def _break(
    stack: Stack,
    options: dict[str, Any],
    chance: random.Random,
    loading: threading.Thread,
    console: Console,
) -> list[CommittedFault]:
    faults = []
    deadline = time.monotonic() + options["minutes"] * 60
    while time.monotonic() < deadline and loading.is_alive():
        time.sleep(chance.uniform(0.5, 1.5) * options["pause"])
        if fault := commit_fault(stack, chance, console):
            faults.append(fault)
    return faults


def _unheard_turns() -> dict[str, str]:
    """Return the turns of the run with their marks: of some, no client heard the number."""
    questions = Message.objects.filter(
        role=Message.Author.USER, conversation__session__startswith=SESSION
    )
    turns = questions.values_list("turn", "conversation__session")
    return {str(turn): session.removeprefix(SESSION) for turn, session in turns}


def _await_end(turns: list[str]) -> None:
    deadline = time.monotonic() + AFTER_SECONDS
    while under_way(turns) and time.monotonic() < deadline:
        time.sleep(0.5)


def _load(load: Load) -> None:
    """Keep the load up while the database comes and goes."""
    while not load.ending.is_set() and len(load.turns) < load.most:
        try:
            load.run()
        except DatabaseError:
            connection.close()
            time.sleep(0.5)


def _await_readiness(console: Console) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while problems := _problems():
        if time.monotonic() > deadline:
            raise CommandError(f"Docent did not become ready: {' '.join(problems)}")
        time.sleep(0.5)
    console.print("ready")


def _problems() -> list[str]:
    try:
        return list(missing_parts())
    except (DatabaseError, redis.RedisError) as error:
        connection.close()
        return [str(error)]


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return value
