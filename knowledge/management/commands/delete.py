"""Delete: removes documents from a collection, and prints what was removed."""

import sys
from argparse import ArgumentParser
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q, QuerySet
from rich.console import Console

from knowledge import ingestion
from knowledge.collections import named
from knowledge.errors import KnowledgeError
from knowledge.management.console import receipt_table
from knowledge.models import Document


class Command(BaseCommand):
    """`manage.py delete --collection NAME [SOURCE…]`."""

    help = (
        "Delete documents with their versions, chunks and vectors, and print a receipt. Files stay "
        "where they are: ingesting them again brings the documents back."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "sources",
            nargs="*",
            metavar="SOURCE",
            help="sources of documents, or folders; without any, all of the collection",
        )
        parser.add_argument("--collection", required=True, metavar="NAME")
        parser.add_argument("--yes", action="store_true", help="do not ask first")

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete them, once that was confirmed."""
        try:
            found = documents(options["collection"], options["sources"])
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        count = found.count()
        if not count:
            raise CommandError("There is no such document in this collection.")
        if not options["yes"]:
            confirm(count, options["collection"])
        receipt = ingestion.delete(found, by="command line", reason="asked for")
        Console(file=cast("IO[str]", self.stdout._out), no_color=options["no_color"]).print(
            receipt_table(receipt)
        )


def documents(collection: str, sources: list[str]) -> QuerySet[Document]:
    """Return the documents named, or all of the collection. Raises UnknownCollection."""
    chosen = Q(source__in=sources) if sources else Q()
    for source in sources:
        chosen |= Q(origin__startswith=f"{source.rstrip('/')}/")
    found = Document.objects.filter(chosen, collection__in=named([collection]))
    return found.defer("content", "summary")


def confirm(count: int, collection: str) -> None:
    """Ask whether to go on. Raises CommandError unless the answer is yes."""
    if not sys.stdin.isatty():
        raise CommandError(f"{count} documents would be deleted: say so with --yes.")
    if input(f"Delete {count} documents of {collection}? [y/N] ").strip().lower() != "y":
        raise CommandError("Nothing was deleted.")
