"""bench: measures speed as a ratio to something in the same run, on servers of its own."""

import json
import sys
from argparse import ArgumentTypeError, _SubParsersAction
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from assistant.lab import (
    bench_analysis,
    bench_answer,
    bench_cancel,
    bench_hops,
    bench_inflight,
    bench_ingest,
    bench_load,
    bench_search,
    bench_streams,
)
from knowledge.errors import KnowledgeError

Benches: TypeAlias = "_SubParsersAction[CommandParser]"
Progress = Callable[[str], Any]
Figures = dict[str, Any]


class Command(BaseCommand):
    """Runs one bench."""

    help = (
        "Measure speed: `hops` of a turn, `search` among so many chunks, `ingest` of a folder, "
        "`answer` with models, `inflight` many turns at once, `load` many clients over HTTP, "
        "`cancel` of turns whose model is at work, `streams` of events that clients follow, "
        "`analysis` by specialists that work at the same time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the benches."""
        benches = parser.add_subparsers(dest="bench", required=True)
        with_langchain = (_search_arguments(benches), _ingest_arguments(benches))
        for bench in with_langchain:
            bench.add_argument(
                "--langchain-python",
                default="",
                metavar="PATH",
                help="a Python that has LangChain, to measure it in the same run",
            )
        others = (
            _hops_arguments(benches),
            _answer_arguments(benches),
            _inflight_arguments(benches),
            _load_arguments(benches),
            _cancel_arguments(benches),
            _streams_arguments(benches),
            _analysis_arguments(benches),
        )
        for bench in (*with_langchain, *others):
            bench.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print."""
        if options["bench"] == "hops":
            bench_hops.prepare()
        if options.get("worker"):
            bench_hops.consume(options["worker"])
            sys.exit()
        if options.get("serve"):
            bench_inflight.serve(options["latency"])
            return
        call_command("migrate", verbosity=0)
        measure, table = BENCHES[options["bench"]]
        try:
            with Console(stderr=True).status(options["bench"]) as status:
                figures = measure(options, status.update)
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(figures))
        else:
            Console().print(table(figures, options))


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
    parser.add_argument("--worker", choices=bench_hops.WORKERS, help="internal")
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


def _load_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("load", help="many clients over HTTP, and crowds")
    parser.add_argument("--clients", type=_positive, default=50, help="at the same time (50)")
    parser.add_argument("--seconds", type=float, default=120.0, help="for so long (120)")
    parser.add_argument(
        "--crowds",
        type=_positive,
        nargs="*",
        default=[100, 300],
        metavar="N",
        help="questions at once (100 300)",
    )
    parser.add_argument(
        "--half-sent", type=_positive, default=400, help="requests that never go on (400)"
    )
    return parser


def _cancel_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("cancel", help="how soon a cancelled turn has ended for all")
    parser.add_argument("--rounds", type=_positive, default=20, help="turns per role (20)")
    return parser


def _streams_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("streams", help="whether who follows a turn misses anything")
    parser.add_argument("--clients", type=_positive, default=8, help="at the same time (8)")
    parser.add_argument("--turns", type=_positive, default=130, help="of each client (130)")
    parser.add_argument(
        "--thinking", type=_positive, default=5, help="turns with a model, resumed everywhere (5)"
    )
    parser.add_argument(
        "--nginx", default="", metavar="PATH", help="nginx, to measure what it adds"
    )
    return parser


def _analysis_arguments(benches: Benches) -> CommandParser:
    parser = benches.add_parser("analysis", help="specialists that work at the same time")
    parser.add_argument("--rounds", type=_positive, default=5, help="turns (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="that each call takes (1)")
    return parser


def _hops(options: dict[str, Any], progress: Progress) -> Figures:
    return bench_hops.measure(
        progress,
        rounds=options["rounds"],
        at_once=options["at_once"],
        langgraph_python=options["vs_langgraph"],
    )


def _search(options: dict[str, Any], progress: Progress) -> Figures:
    return bench_search.measure(
        options["chunks"], progress, langchain_python=options["langchain_python"]
    )


def _ingest(options: dict[str, Any], progress: Progress) -> Figures:
    return bench_ingest.measure(
        options["folder"], progress, langchain_python=options["langchain_python"]
    )


def _answer(options: dict[str, Any], progress: Progress) -> Figures:
    return bench_answer.measure(options["seconds"], options["questions"], progress)


def _inflight(options: dict[str, Any], progress: Progress) -> Figures:
    plan = bench_inflight.Plan(
        options["turns"], options["latency"], options["concurrency"], options["copies"]
    )
    return bench_inflight.measure(plan, progress)


def _load(options: dict[str, Any], progress: Progress) -> Figures:
    crowds = tuple(options["crowds"])
    plan = bench_load.Plan(options["clients"], options["seconds"], crowds, options["half_sent"])
    return bench_load.measure(plan, progress)


def _cancel(options: dict[str, Any], progress: Progress) -> Figures:
    return bench_cancel.measure(options["rounds"], progress)


def _streams(options: dict[str, Any], progress: Progress) -> Figures:
    plan = bench_streams.Plan(
        options["clients"], options["turns"], options["thinking"], options["nginx"]
    )
    return bench_streams.measure(plan, progress)


def _analysis(options: dict[str, Any], progress: Progress) -> Figures:
    return bench_analysis.measure(options["rounds"], options["seconds"], progress)


Measure = Callable[[dict[str, Any], Progress], Figures]
Show = Callable[[Figures, dict[str, Any]], Table]
BENCHES: dict[str, tuple[Measure, Show]] = {
    "hops": (_hops, lambda figures, options: bench_hops.table(figures, options["at_once"])),
    "search": (_search, lambda figures, _: bench_search.table(figures)),
    "ingest": (_ingest, lambda figures, _: bench_ingest.table(figures)),
    "answer": (_answer, lambda figures, _: bench_answer.table(figures)),
    "load": (_load, lambda figures, _: bench_load.table(figures)),
    "cancel": (_cancel, lambda figures, _: bench_cancel.table(figures)),
    "analysis": (_analysis, lambda figures, _: bench_analysis.table(figures)),
    "streams": (_streams, lambda figures, _: bench_streams.table(figures)),
    "inflight": (_inflight, lambda figures, _: bench_inflight.table(figures)),
}


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)
