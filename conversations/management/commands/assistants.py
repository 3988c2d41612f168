"""assistants: lists the assistants of this deployment, and carries them as files."""

import sys
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Count
from rich.console import Console
from rich.table import Table

from conversations.assistant_file import Sheet, UnusableFile, exported, parsed, store
from conversations.errors import UnknownAssistant
from conversations.models import Assistant
from conversations.reach import assistant_named
from knowledge.errors import InvalidCollectionName
from knowledge.models import Collection

# What lies in a folder with an example: the assistant, and pages for its first collection.
FILE, PAGES = "assistant.toml", "pages"
STANDARD_OUTPUT = "-"


class Command(BaseCommand):
    """`manage.py assistants [list|export NAME FILE|import PATH]`."""

    help = "List the assistants, write one into a file, or take one in from a file or folder."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add list, export and import."""
        verbs = parser.add_subparsers(dest="verb")
        verbs.add_parser("list", help="which there are")
        export = verbs.add_parser("export", help="write one into a TOML file")
        export.add_argument("name")
        export.add_argument("file", nargs="?", default=STANDARD_OUTPUT, help="- prints it")
        take = verbs.add_parser("import", help="take one in: made, or changed to what is said")
        take.add_argument(
            "path", type=Path, help=f"a TOML file, or a folder with {FILE} and {PAGES}/"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do one of the three; list them when none is named."""
        try:
            match options["verb"]:
                case "export":
                    self._export(options["name"], options["file"])
                case "import":
                    self._import(options["path"])
                case _:
                    self._list()
        except OSError as error:
            said = f"{error.filename}: {error.strerror}." if error.strerror else str(error)
            raise CommandError(said) from error
        except (UnknownAssistant, UnusableFile, InvalidCollectionName) as error:
            raise CommandError(str(error)) from error

    def _list(self) -> None:
        table = Table("name", "title", "collections", "routes", "keys", "changed")
        for each in Assistant.objects.annotate(keys=Count("grants")).order_by("name"):
            table.add_row(
                each.name,
                each.title,
                ", ".join(each.collections) or "all",
                ", ".join(each.open_routes),
                str(each.keys),
                f"{each.updated:%Y-%m-%d %H:%M} UTC",
            )
        Console().print(table if table.row_count else "There are no assistants.")

    def _export(self, name: str, file: str) -> None:
        text = exported(assistant_named(name))
        if file == STANDARD_OUTPUT:
            self.stdout.write(text, ending="")
            return
        Path(file).write_text(text, encoding="utf-8")
        self.stderr.write(f"{name} is written to {file}.")

    def _import(self, path: Path) -> None:
        is_folder = path.is_dir()
        sheet = parsed((path / FILE if is_folder else path).read_bytes())
        pages = path / PAGES if is_folder and (path / PAGES).is_dir() else None
        if pages and not sheet.collections:
            raise UnusableFile(f"collections: name one; the pages of {pages} go into the first.")
        with transaction.atomic():
            if pages:
                _make(sheet)
            assistant, outcome = store(sheet)
        self.stderr.write(f"Assistant {assistant.name}: {outcome}.")
        if pages:
            # What is asked for is said on standard output, and how far it is beside it.
            call_command("ingest", str(pages), collection=sheet.collections[0], stdout=sys.stderr)


def _make(sheet: Sheet) -> None:
    """Make the collection for the pages; who asks of everything shall not find them.

    Raises InvalidCollectionName.
    """
    name = sheet.collections[0]
    try:
        Collection(name=name).clean_fields()
    except ValidationError as error:
        raise InvalidCollectionName(name) from error
    Collection.objects.get_or_create(name=name, defaults={"only_by_name": True})
