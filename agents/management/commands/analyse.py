"""analyse: many requirements held against many documents, as a table and a report."""

import json
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.table import Table

from agents.analysis.obligations import LIKELY, SURE
from agents.library import verdict
from agents.library.assessment import (
    Batch,
    Row,
    UnusableBatch,
    as_json,
    as_markdown,
    documents_in,
    prescribed,
    requirements_of,
)
from knowledge.collections import collections_named
from knowledge.errors import KnowledgeError
from knowledge.management.console import console_of, progress_bar

# What the columns of the table count.
SAID = {
    "Entailment": "says so",
    "Contradiction": "says otherwise",
    "NotMentioned": "does not say",
    "": "not judged",
}
NEAR = {"high": "surely near", "medium": "perhaps near", "low": "nothing near"}


class Command(BaseCommand):
    """`manage.py analyse COLLECTION …`."""

    help = (
        "Hold every document of a collection against requirements: the lines of a file, or what "
        "another collection prescribes. Stopped, the same command goes on from there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare what is held against what."""
        parser.add_argument("collection", metavar="COLLECTION", help="its documents are read")
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "--against", metavar="COLLECTION", help="requirements: what its documents prescribe"
        )
        where.add_argument(
            "--questions", type=Path, metavar="FILE", help="requirements: a line of text for each"
        )
        parser.add_argument(
            "--report", type=Path, default=Path("analysis.md"), metavar="FILE",
            help="the report as Markdown; beside it one as JSON, and the rows (%(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--limit", type=int, default=None, metavar="N", help="the first N requirements (all)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the rows that are missing, and write the report."""
        report: Path = options["report"]
        if not report.parent.is_dir():
            raise CommandError(f"--report {report}: there is no folder {report.parent}.")
        try:
            rows = self._rows(options, report.with_suffix(".rows.jsonl"))
        except (KnowledgeError, UnusableBatch) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError("Stopped. The same command goes on from here.") from error
        title = f"{options['collection']} against {options['against'] or options['questions'].name}"
        report.write_text(as_markdown(rows, title), encoding="utf-8")
        values = json.dumps(as_json(rows), ensure_ascii=False, indent=1)
        report.with_suffix(".json").write_text(values, encoding="utf-8")
        console_of(self, options).print(table(rows, title))
        self.stdout.write(f"Report: {report}, {report.with_suffix('.json')}")

    def _rows(self, options: dict[str, Any], path: Path) -> list[Row]:
        names = [options["collection"], *filter(None, [options["against"]])]
        collections_named(names)
        documents = documents_in(options["collection"])
        questions: Path | None = options["questions"]
        every = requirements_of(questions) if questions else prescribed(options["against"])
        model = verdict.model_name()
        batch = Batch(path, verdict.judged if model else None, model)
        with progress_bar("requirements") as watch:
            return batch.run(every[: options["limit"]], documents, watch)


def table(rows: list[Row], title: str) -> Table:
    """Return a line per document, with how many requirements came to what."""
    headings = SAID if any(row.verdict for row in rows) else NEAR
    shown = Table("Document", "requirements", title=title, title_justify="left")
    for heading in headings.values():
        shown.add_column(heading, justify="right")
    for document in dict.fromkeys(row.document_id for row in rows):
        own = [row for row in rows if row.document_id == document]
        counts = Counter(row.verdict if headings is SAID else nearness(row) for row in own)
        shown.add_row(own[0].title, str(len(own)), *(str(counts[each]) for each in headings))
    return shown


def nearness(row: Row) -> str:
    """Return how sure search is that the document speaks of the requirement."""
    sure = row.certainty or 0.0
    return "high" if sure >= SURE else "medium" if sure >= LIKELY else "low"
