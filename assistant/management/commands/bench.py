"""bench: measures speed as a ratio to something in the same run, on servers of its own."""

import json
import sys
import time
from argparse import ArgumentTypeError, _SubParsersAction
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from agents.names import Role
from agents.steps import presence
from assistant.lab import (
    bench_answer,
    bench_hops,
    bench_inflight,
    bench_ingest,
    bench_search,
    figures,
    scripted_replies,
)
from assistant.lab.figures import Figures
from assistant.lab.rehearsal import COLLECTION, rehearsing
from assistant.local.processes import Child, end, python
from assistant.management.commands.workers import consume
from knowledge.errors import KnowledgeError

Benches: TypeAlias = "_SubParsersAction[CommandParser]"
START_SECONDS = 60.0
WORKERS = ("manager", "agents", *bench_hops.QUEUES)


class Command(BaseCommand):
    """Runs one bench."""

    help = (
        "Measure speed: `hops` of a turn, `search` among so many chunks, `ingest` of a folder, "
        "`answer` with models, `inflight` many turns at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the benches."""
        benches = parser.add_subparsers(dest="bench", required=True)
        with_langchain = (_search_arguments(benches), _ingest_arguments(benches))
        for each in with_langchain:
            each.add_argument(
                "--langchain-python",
                default="",
                metavar="PATH",
                help="a Python that has LangChain, to measure it in the same run",
            )
        others = (
            _hops_arguments(benches),
            _answer_arguments(benches),
            _inflight_arguments(benches),
        )
        for each in (*with_langchain, *others):
            each.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print."""
        if options["bench"] == "hops":
            bench_hops.prepare()
        if options.get("worker"):
            _consume(options["worker"])
            return
        if options.get("serve"):
            bench_inflight.serve(options["latency"])
            return
        call_command("migrate", verbosity=0)
        measure, table = BENCHES[options["bench"]]
        try:
            measured = measure(options)
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(measured))
        else:
            Console().print(table(measured, options))


def _hops_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("hops", help="what durability costs")
    parser.add_argument("--rounds", type=int, default=30, help="single turns (30)")
    parser.add_argument("--at-once", type=int, default=100, help="turns at once (100)")
    parser.add_argument(
        "--vs-langgraph",
        nargs="?",
        default="",
        const=sys.executable,
        metavar="PYTHON",
        help="measure LangGraph in the same run; a Python that has it and its PostgreSQL "
        "checkpointer, if that is not the one of Docent",
    )
    # What a worker process of the bench is started with; not for people.
    parser.add_argument("--worker", choices=WORKERS, help="internal")
    return parser


def _search_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("search", help="how fast passages are found")
    parser.add_argument("--chunks", type=_positive, default=10_000, help="made up for it (10000)")
    return parser


def _ingest_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("ingest", help="how fast a folder becomes searchable")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    return parser


def _answer_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("answer", help="how long a question waits for models")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="that each call of a model takes (1)"
    )
    parser.add_argument(
        "--questions", type=_positive, default=100, help="asked twice, at 0 seconds a call"
    )
    return parser


def _inflight_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("inflight", help="many turns at once")
    parser.add_argument("--turns", type=_positive, default=300, help="at once (300)")
    parser.add_argument(
        "--latency", type=float, default=1.0, help="seconds that each call takes (1)"
    )
    parser.add_argument(
        "--concurrency", type=_positive, default=4, help="steps of a role per copy (4)"
    )
    parser.add_argument("--copies", type=_positive, default=2, help="processes of agents (2)")
    parser.add_argument("--serve", action="store_true", help="internal")
    return parser


def _hops(options: dict[str, Any]) -> Figures:
    console = Console(stderr=True)
    children = [Child(name, python("bench", "hops", "--worker", name), "cyan") for name in WORKERS]
    for child in children:
        child.begin(console)
    try:
        with console.status("starting the workers") as status:
            _await_workers(children)
            return bench_hops.measure(
                status.update,
                rounds=options["rounds"],
                at_once=options["at_once"],
                langgraph_python=options["vs_langgraph"],
            )
    finally:
        end(child.process for child in children if child.process)


def _search(options: dict[str, Any]) -> Figures:
    with Console(stderr=True).status("search") as status:
        return bench_search.run(
            options["chunks"], status.update, langchain_python=options["langchain_python"]
        )


def _ingest(options: dict[str, Any]) -> Figures:
    with Console(stderr=True).status("ingest") as status:
        return bench_ingest.run(
            options["folder"], status.update, langchain_python=options["langchain_python"]
        )


def _answer(options: dict[str, Any]) -> Figures:
    usual = scripted_replies.Usual(options["seconds"])
    with (
        Console(stderr=True).status("answer") as status,
        rehearsing(usual.reply, cached=True) as server,
    ):
        status.update("one turn")
        waiting = bench_answer.waiting(server, COLLECTION, options["seconds"])
        usual.seconds = 0.0
        again = bench_answer.repeated(server, COLLECTION, options["questions"], status.update)
        return {"seconds": options["seconds"], "waiting": waiting, "repeated": again}


def _inflight(options: dict[str, Any]) -> Figures:
    plan = bench_inflight.Plan(
        options["turns"], options["latency"], options["concurrency"], options["copies"]
    )
    return bench_inflight.measure(plan, Console(stderr=True))


BENCHES: dict[str, tuple[Callable[..., Figures], Callable[..., Table]]] = {
    "hops": (_hops, figures.of_hops),
    "search": (_search, figures.of_search),
    "ingest": (_ingest, figures.of_ingest),
    "answer": (_answer, figures.of_answer),
    "inflight": (_inflight, figures.of_inflight),
}


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def _consume(name: str) -> None:
    if name in bench_hops.QUEUES:
        bench_hops.consume(name)
    else:
        consume([role for role in Role if (role is Role.MANAGER) == (name == "manager")])
    sys.exit()


def _await_workers(children: list[Child]) -> None:
    until = time.monotonic() + START_SECONDS
    while presence.missing_roles():
        died = any(child.process and child.process.poll() is not None for child in children)
        if died or time.monotonic() > until:
            raise CommandError("The workers of the bench did not start.")
        time.sleep(0.1)
