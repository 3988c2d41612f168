"""analyse: many questions or requirements put to many documents, as a table and a report."""

import json
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from agents.library.assessment import (
    Batch,
    Requirement,
    Row,
    UnusableBatch,
    by_rules,
    documents_in,
    prescribed,
    requirements_of,
)
from agents.library.assessment_report import as_json, as_markdown, counts_of, table
from agents.models import Report
from conversations import inquiry
from conversations.errors import ConversationError
from conversations.inquiry import Inquiry
from conversations.terminal import workers
from knowledge.collections import collections_named
from knowledge.errors import KnowledgeError
from knowledge.management.console import console_of, progress_bar
from knowledge.models import Collection, Document

AT_ONCE = 2
NOBODY_JUDGES = (
    "Nothing is judged: that takes a model for the orchestrator (GEN_MODEL or ORCHESTRATOR_MODEL) "
    "and the route analysis (ROUTES). The nearest passages are listed."
)
NAMELESS = re.compile(r"[^a-z0-9_-]+")


class Command(BaseCommand):
    """`manage.py analyse FOLDER|COLLECTION …`."""

    help = (
        "Put questions or requirements to every document of a collection or folder, each by the "
        "route of analyses, or hold them against what another collection requires. Without a model "
        "the nearest passages are listed. Stopped, the same command goes on from there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare what is held against what."""
        parser.add_argument(
            "subject",
            metavar="FOLDER|COLLECTION",
            help="its documents are read; a folder becomes a collection of its own",
        )
        parser.add_argument(
            "--against", metavar="COLLECTION", help="what its documents require, and say besides"
        )
        parser.add_argument(
            "--questions", type=Path, metavar="FILE", help="a line for each question or requirement"
        )
        parser.add_argument(
            "--report", type=Path, default=Path("analysis.md"), metavar="FILE",
            help="the report as Markdown; beside it one as JSON, and the rows (%(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--limit", type=int, default=None, metavar="N", help="the first N questions (all)"
        )
        parser.add_argument(
            "--at-once", type=int, default=AT_ONCE, metavar="N",
            help="questions that a model works on at the same time (%(default)s)",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the rows that are missing, and write the report."""
        report: Path = options["report"]
        if not (options["against"] or options["questions"]):
            raise CommandError("Name --against COLLECTION, --questions FILE, or both.")
        if not report.parent.is_dir():
            raise CommandError(f"--report {report}: there is no folder {report.parent}.")
        if options["at_once"] < 1:
            raise CommandError("--at-once takes a number from 1 on.")
        try:
            if against := options["against"]:
                collections_named([against])
            collection = self._collection(options["subject"])
            rows = self._rows(options, collection, report.with_suffix(".rows.jsonl"))
        except (KnowledgeError, UnusableBatch, ConversationError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError("Stopped. The same command goes on from here.") from error
        held = filter(None, (against, options["questions"] and options["questions"].name))
        subject = Path(options["subject"]).name or options["subject"]
        title = f"{subject} against {', '.join(held)}"
        text = as_markdown(rows, title)
        report.write_text(text, encoding="utf-8")
        Report.objects.create(
            title=title[:300], collection=collection, text=text, counts=counts_of(rows)
        )
        values = json.dumps(as_json(rows), ensure_ascii=False, indent=1)
        report.with_suffix(".json").write_text(values, encoding="utf-8")
        console_of(self, options).print(table(rows, title))
        self.stdout.write(f"Report: {report}, {report.with_suffix('.json')}, and in the admin")

    def _rows(self, options: dict[str, Any], collection: str, path: Path) -> list[Row]:
        questions: Path | None = options["questions"]
        written = requirements_of(questions) if questions else []
        against: str | None = options["against"]
        documents = documents_in(collection)
        if not inquiry.can_judge():
            self.stderr.write(NOBODY_JUDGES)
            every = [*written, *(prescribed(against) if against else [])]
            return _run(Batch(path, by_rules), every[: options["limit"]], documents)
        others = documents_in(against) if against else []
        every = written or [inquiry.as_a_whole(against or "", others)]
        asked = every[: options["limit"]]
        held = [f"{each.pk} {each.version}" for each in others]
        batch = Batch(
            path,
            Inquiry(others, options["at_once"]).rows,
            ";".join([inquiry.judge_name(), *held]),
        )
        self._tell(len(batch.missing(asked, documents)))
        with workers():
            return _run(batch, asked, documents)

    def _collection(self, subject: str) -> str:
        """Return the collection of that name; of a folder, the one into which it is taken first."""
        is_path = any(mark in subject for mark in "/\\.")
        if not is_path and Collection.objects.filter(name=subject).exists():
            return subject
        folder = Path(subject)
        if not folder.exists():
            collections_named([subject])
        name = f"analysis-{NAMELESS.sub('-', folder.resolve().name.lower()).strip('-')}"[:63]
        Collection.objects.get_or_create(name=name, defaults={"only_by_name": True})
        call_command("ingest", str(folder), collection=name, stdout=self.stderr)
        return name

    def _tell(self, questions: int) -> None:
        """Say what the questions may cost, before they are asked."""
        if not questions:
            return
        expected = inquiry.expected(questions)
        cost = "price not known" if expected.cost is None else f"{expected.cost:.2f} USD"
        basis = "a guess" if expected.is_guess else "as analyses came to lately"
        self.stderr.write(
            f"Questions: {questions}; about {expected.calls:,} calls and "
            f"{expected.tokens:,} tokens of models, {cost} ({basis})."
        )


def _run(
    batch: Batch, requirements: Sequence[Requirement], documents: Sequence[Document]
) -> list[Row]:
    with progress_bar("questions") as watch:
        return batch.run(requirements, documents, watch)
