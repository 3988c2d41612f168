"""evaluate: how well documents and languages are read, passages found and orders withstood."""

import json
import sys
import uuid
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, TypeVar

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console, RenderableType

from agents.steps import presence
from assistant.lab import (
    answer_quality,
    answerability,
    api_cases,
    bench_answer,
    citation_quality,
    compliance_quality,
    false_alarms,
    fault_turns,
    fault_verdicts,
    injection,
    judged_data,
    language_quality,
    parsing_quality,
    retrieval,
    routing_quality,
    scripted_tools,
    tool_turns,
    verdict,
)
from assistant.lab.judged_data import Unjudgeable
from assistant.lab.rehearsal import cpu_seconds, rehearsing, working
from assistant.lab.retrieval_chart import svg
from assistant.lab.scripted_faults import BY_NAME, FAULTS
from assistant.lab.scripted_replies import Obedient
from assistant.management.commands.workers import processes
from knowledge import golden
from knowledge.collections import collections_named
from knowledge.errors import KnowledgeError
from knowledge.ingestion import plan
from knowledge.management.console import console_of, progress_bar, run_with_bar
from knowledge.models import Ingest

Kinds: TypeAlias = "_SubParsersAction[ArgumentParser]"
T = TypeVar("T")
Result = tuple[Any, RenderableType]  # as JSON values, and for people

CITATIONS = (
    "whether it is known which claims their sources support: a file of lines with claim, "
    "evidence, label and supporting_sentences, as in WiCE"
)
LANGUAGE = "whether the language of a first message is told: a file of lines with text and language"
ROUTING = (
    "how often a first message takes the route it belongs to: a file of lines with text and route"
)
GUARDRAILS = (
    "how much that is harmless is declined, and how much that is unsafe is caught: a file of "
    "lines with text and unsafe"
)


class Command(BaseCommand):
    """`manage.py evaluate KIND …`."""

    help = "Measure quality on judged data. What is taken in for it is kept for the next run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the kinds and their arguments."""
        kinds = parser.add_subparsers(dest="kind", required=True)
        for kind, measure in (
            (_retrieval_arguments(kinds), measure_retrieval),
            (_golden_arguments(kinds), measure_golden),
            (_answerability_arguments(kinds), measure_answerability),
            (_parsing_arguments(kinds), measure_parsing),
            (_answers_arguments(kinds), measure_answers),
            (_file_arguments(kinds, "citations", CITATIONS), measure_citations),
            (_file_arguments(kinds, "language", LANGUAGE), measure_language),
            (_file_arguments(kinds, "guardrails", GUARDRAILS), measure_guardrails),
            (_file_arguments(kinds, "routing", ROUTING), measure_routing),
            (_compliance_arguments(kinds), measure_compliance),
            (_injection_arguments(kinds), measure_injection),
            (_faults_arguments(kinds), measure_faults),
            (_tools_arguments(kinds), measure_tools),
            (_api_arguments(kinds), measure_api),
        ):
            kind.set_defaults(measure=measure)
            kind.add_argument("--json", action="store_true", help="print the figures as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure, and print a table or JSON."""
        try:
            figures, table = options["measure"](options)
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError(
                "Interrupted. What was taken in stays; the same command goes on from here.",
                returncode=130,
            ) from error
        if options["json"]:
            self.stdout.write(json.dumps(figures))
        else:
            console_of(self, options).print(table)
        if options["kind"] == "injection" and any(map(injection.broken, figures.values())):
            sys.exit(1)
        if options["kind"] in {"faults", "tools", "api"} and figures["bad"]:
            sys.exit(1)


def _retrieval_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "retrieval",
        help="whether the right passages are found: a folder of corpus.jsonl[.gz] (id, title, "
        "text), queries.jsonl (id, text, rewrite?) and qrels.tsv",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--collection", default="", metavar="NAME", help="keep the passages under this name"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures as SVG")
    return parser


def _golden_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "golden", help="how many of the documents marked as answers are found, per collection"
    )
    parser.add_argument("collections", nargs="+", metavar="COLLECTION")
    return parser


def _answerability_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "answerability",
        help="whether a search knows when it found nothing: a file of lines with question and "
        "answerable",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--collection", nargs="+", default=[], metavar="NAME", help="all when left out"
    )
    parser.add_argument(
        "--documents", nargs="+", default=[], type=Path, metavar="PATH",
        help="take these in first, into a collection of their own, and search it",
    )  # fmt: skip
    return parser


def _answers_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "answers",
        help="what comes back to questions: a file of lines with question and, where known, "
        "answer, sources and answerable. Through workers, with the models that are configured",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--collection", required=True, metavar="NAME", help="answer from this one")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep every reply as JSON lines")
    return parser


def _parsing_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "parsing",
        help="how near what is read comes to expected Markdown: a folder with "
        "<format>/sources/<file> and <format>/groundtruth/<file>.md, or with one document in "
        "several formats, files of one name",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    return parser


def _file_arguments(kinds: Kinds, kind: str, purpose: str) -> ArgumentParser:
    """A kind that takes a file of judged lines and nothing else."""
    parser = kinds.add_parser(kind, help=purpose)
    parser.add_argument("file", type=Path, metavar="FILE")
    return parser


def _injection_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "injection",
        help="whether orders in questions and documents come through when every model obeys them: "
        "a JSON list of objects with user_input; exit code 1 when one does. On servers of its own",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--limit", type=int, default=None, metavar="N", help="only the first N (all)"
    )
    return parser


def _compliance_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "compliance",
        help="whether what bears on a requirement is found in a contract, and what the compliance "
        "agent's model says of it: a JSON file of contracts as in ContractNLI",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--limit", type=int, default=None, metavar="N", help="only the first N contracts (all)"
    )
    return parser


def _faults_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "faults",
        help=f"what a user gets to an ordinary question while a server or a model fails, in "
        f"{len(FAULTS) - 1} ways; exit code 1 when one of them is bad. On servers of its own",
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these faults, by name (all)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the figures as JSON")
    parser.add_argument(
        "--before", type=Path, metavar="FILE", help="show beside them what was saved there"
    )
    return parser


def _tools_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "tools",
        help=f"what a customer gets while a model uses tools badly or a tool fails, in "
        f"{len(scripted_tools.LINES) - 1} ways; exit code 1 when one of them is bad. On servers "
        "of its own",
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these lines, by name (all)"
    )
    return parser


def measure_retrieval(options: dict[str, Any]) -> Result:
    """Take the corpus in if it is new, ask every question, and draw."""
    plot: Path | None = options["plot"]
    if plot and plot.suffix.lower() != ".svg":
        raise CommandError(f"--plot {plot}: pictures are drawn as SVG; name a file that ends so.")
    folder = judged_data.read_folder(options["folder"])
    collection = judged_data.take_in(folder, name=options["collection"], work=watched_work)
    with progress_bar("questions") as watch:
        figures = retrieval.evaluate(collection, watch)
    title = (
        f"{options['folder'].resolve().name}: {len(folder.questions):,} questions "
        f"over {folder.size:,} passages"
    )
    if plot:
        try:
            plot.write_text(svg(figures, title), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"--plot {plot}: {error.strerror}.") from error
    return figures, retrieval.table(figures, title, collection)


def measure_golden(options: dict[str, Any]) -> Result:
    """Ask every collection its golden questions."""
    figures = {}
    for collection in collections_named(options["collections"]):
        with progress_bar(f"golden questions to {collection.name}"):
            figures[collection.name] = golden.figures(collection, golden.rankings(collection))
    return figures, retrieval.golden_table(figures)


def measure_answerability(options: dict[str, Any]) -> Result:
    """Take documents in if there are any, and ask every question."""
    questions = answerability.questions_of(options["file"])
    collections = list(options["collection"])
    if options["documents"]:
        collections.append(collection_of(options["documents"], options["file"]))
    with progress_bar("questions") as watch:
        figures = answerability.evaluate(questions, collections, watch)
    return figures, answerability.table(figures)


def measure_answers(options: dict[str, Any]) -> Result:
    """Ask every question of workers of this command's own, or of those that are running."""
    questions = answer_quality.questions_of(options["file"])
    (collection,) = collections_named([options["collection"]])
    commands = processes([]) if presence.missing_roles() else {}
    with (
        answer_quality.saving(options["save"]) as keep,
        working(commands) as children,
        progress_bar("questions") as watch,
    ):
        before = cpu_seconds(children)
        replies = answer_quality.ask_all(
            questions, lambda text: bench_answer.ask(text, collection.name).turn, watch, keep
        )
        after = cpu_seconds(children)
    cost = None if before is None or after is None else (after - before) / len(questions)
    figures = answer_quality.figures(replies, cost)
    return figures, answer_quality.table(figures)


def collection_of(paths: list[Path], file: Path) -> str:
    """Bring the collection made for these paths to what they say; return its name."""
    digest = sha256("\0".join(sorted(str(path.resolve()) for path in paths)).encode())
    name = judged_data.collection_name(file.resolve().parent.name, digest.hexdigest())
    judged_data.make_apart(name)
    judged_data.finish(plan(name, paths=paths), watched_work)
    return name


def watched_work(job: uuid.UUID) -> None:
    """Do the job under a progress bar, or watch the worker that does."""
    run_with_bar(Ingest.objects.get(pk=job), Console(stderr=True))


def measure_parsing(options: dict[str, Any]) -> Result:
    """Read every file and compare."""
    folder: Path = options["folder"]
    rows = parsing_quality.compare(folder) if folder.is_dir() else []
    if not rows:
        raise Unjudgeable(
            f"{folder}: there is no <format>/sources/<file> in it, and no document in several "
            "formats (such as manual.md and manual.html)."
        )
    return [vars(row) for row in rows], parsing_quality.table(rows)


def measure_citations(options: dict[str, Any]) -> Result:
    """Compare what is said of each claim with its label."""
    figures = citation_quality.evaluate(citation_quality.claims_of(options["file"]))
    return figures, citation_quality.table(figures)


def measure_language(options: dict[str, Any]) -> Result:
    """Let the lang agent read every text as a first message."""
    figures = language_quality.evaluate(language_quality.texts_of(options["file"]))
    return figures, language_quality.table(figures)


def measure_guardrails(options: dict[str, Any]) -> Result:
    """Judge every text at every strictness."""
    texts = false_alarms.judged_texts(options["file"])
    with progress_bar("texts") as watch:
        figures = false_alarms.evaluate(texts, watch)
    return figures, false_alarms.table(figures, texts)


def measure_routing(options: dict[str, Any]) -> Result:
    """Send every message on its way as a first one."""
    messages = routing_quality.messages_of(options["file"])
    with progress_bar("messages") as watch:
        figures = routing_quality.evaluate(messages, watch)
    return figures, routing_quality.table(figures)


def measure_injection(options: dict[str, Any]) -> Result:
    """Ask real workers, whose models obey every order, and count what came through."""
    orders = injection.orders_of(options["file"])[: options["limit"]]
    model = Obedient()
    call_command("migrate", verbosity=0)
    with rehearsing(model.reply) as server, progress_bar("orders") as watch:
        figures = injection.evaluate(
            orders,
            server,
            model,
            lambda text, collection: bench_answer.ask(text, collection).turn,
            watch,
        )
    return figures, injection.table(figures)


def _api_arguments(kinds: Kinds) -> ArgumentParser:
    parser = kinds.add_parser(
        "api",
        help="whether the API does what its schema says: right and wrong requests made up from "
        "it, with keys of every scope; exit code 1 when not. On servers of its own",
    )
    parser.add_argument("--cases", type=int, default=50, help="of each operation and key (50)")
    parser.add_argument("--seed", type=int, default=1, help="makes up other cases (1)")
    parser.add_argument("--only", nargs="+", default=[], metavar="KEY", help="these keys")
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="keep what was found with each key"
    )
    return parser


def measure_api(options: dict[str, Any]) -> Result:
    """Try what is made up from the schema with each key."""
    with api_cases.serving() as port, TemporaryDirectory() as scratch:
        keys, names = api_cases.keys(), api_cases.known()
        chosen = _named(options["only"], {key: key for key in keys}, "key")
        rows = []
        for key in chosen:
            folder = (options["save"] or Path(scratch)) / key.replace(" ", "-")
            rows.append(
                api_cases.figures(
                    key,
                    api_cases.try_key(
                        port,
                        keys[key],
                        names,
                        folder,
                        cases=options["cases"],
                        seed=options["seed"],
                    ),
                )
            )
    bad = sum(row[column] for row in rows for column in api_cases.COLUMNS)
    return {"keys": rows, "bad": bad}, api_cases.table(rows)


def measure_compliance(options: dict[str, Any]) -> Result:
    """Look for every requirement in every contract, and ask the model, if there is one."""
    judged = compliance_quality.contracts_of(options["file"], options["limit"])
    collection = compliance_quality.take_in(judged, options["file"], watched_work)
    judge = verdict.judged if verdict.model_name() else None
    with progress_bar("requirements") as watch:
        figures = compliance_quality.evaluate(judged, collection, judge, watch)
    return figures, compliance_quality.table(figures)


def _named(names: Sequence[str], known: Mapping[str, T], what: str) -> list[T]:
    """Return those of these names; all, where there are none. Raises CommandError."""
    if unknown := [name for name in names if name not in known]:
        raise CommandError(f"There is no {what} {unknown[0]!r}; there are: {'; '.join(known)}.")
    return [known[name] for name in names] or list(known.values())


def measure_faults(options: dict[str, Any]) -> Result:
    """Ask an ordinary question while the server has each fault."""
    chosen = _named(options["only"], BY_NAME, "fault")
    before = fault_verdicts.saved(options["before"]) if options["before"] else None
    call_command("migrate", verbosity=0)
    with progress_bar("faults") as watch:
        figures = fault_verdicts.figures(fault_turns.measure(chosen, watch))
    if options["save"]:
        fault_verdicts.save(figures, options["save"])
    return figures, fault_verdicts.table(figures, before)


def measure_tools(options: dict[str, Any]) -> Result:
    """Ask for a refund while the model uses tools in each way."""
    chosen = _named(options["only"], scripted_tools.BY_NAME, "line")
    call_command("migrate", verbosity=0)
    with progress_bar("lines") as watch:
        figures = tool_turns.figures(tool_turns.measure(chosen, watch))
    return figures, tool_turns.table(figures)
