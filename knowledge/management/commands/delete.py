"""Delete: removes documents from a collection, and prints what was removed."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q, QuerySet

from knowledge import ingestion
from knowledge.collections import collections_named
from knowledge.errors import KnowledgeError
from knowledge.management.console import console_of, receipt_table
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
            chosen_documents = documents(options["collection"], options["sources"])
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        count = chosen_documents.count()
        if not count:
            raise CommandError("There is no such document in this collection.")
        if not options["yes"]:
            confirm(count, options["collection"])
        receipt = ingestion.delete(chosen_documents, by="command line", reason="asked for")
        console_of(self, options).print(receipt_table(receipt))


def documents(collection: str, sources: list[str]) -> QuerySet[Document]:
    """Return the documents named, or all of the collection. Raises UnknownCollection."""
    chosen = Q(source__in=sources) if sources else Q()
    for source in sources:
        chosen |= Q(origin__startswith=f"{source.rstrip('/')}/")
    matching = Document.objects.filter(chosen, collection__in=collections_named([collection]))
    return matching.defer("content", "summary")


def confirm(count: int, collection: str) -> None:
    """Ask whether to go on. Raises CommandError unless the answer is yes."""
    if not sys.stdin.isatty():
        raise CommandError(f"{count} documents would be deleted: say so with --yes.")
    if input(f"Delete {count} documents of {collection}? [y/N] ").strip().lower() != "y":
        raise CommandError("Nothing was deleted.")
