"""chat: talks with the assistant in the terminal."""

import json
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from rich.console import Console

from conversations.api import SESSION
from conversations.errors import ConversationError
from conversations.reach import assistant_named, chosen_collections
from conversations.services import Filters, checked
from conversations.terminal import workers
from conversations.terminal_talk import Talk
from knowledge.collections import OWN_DOCUMENTATION, collections_named, intake
from knowledge.errors import UnknownCollection
from knowledge.models import Collection, Document


class Command(BaseCommand):
    """Asks one question, or holds a conversation until the user leaves."""

    help = "Talk in the terminal; with -q ask once. Exit code: 0 answered, 3 asked back, 1 failed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add -q, --json, --session, --collection, --assistant, --language and --audience."""
        parser.add_argument("-q", "--question", help="ask this once and leave")
        parser.add_argument("--json", action="store_true", help="the answer as POST /api/chat/")
        parser.add_argument("--session", default="", help="continue the conversation of this name")
        parser.add_argument(
            "--collection", action="append", default=[], help="answer from this one (repeatable)"
        )
        parser.add_argument(
            "--assistant", default="", metavar="NAME", help="ask this one of several assistants"
        )
        parser.add_argument(
            "--language",
            action="append",
            default=[],
            help="answer from documents in this language, such as en (repeatable)",
        )
        parser.add_argument(
            "--audience", default="", help="answer from documents for these, and for everybody"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask once, or again and again."""
        self.console = Console(stderr=options["json"])
        question, session = options["question"], options["session"]
        try:
            filters = Filters(options["language"], options["audience"])
            if session and not SESSION.match(session):
                raise CommandError("--session takes 1 to 64 letters, digits, '.', ':', '_' or '-'.")
            if question is not None:
                checked(question)
            if settings.IS_EMBEDDED:
                self._take_own_documentation_in()
            assistant = assistant_named(options["assistant"]) if options["assistant"] else None
            if assistant:
                chosen_collections(assistant, options["collection"])
            else:
                collections_named(options["collection"])
            talk = Talk(
                self.console,
                session=session,
                assistant=assistant,
                collections=options["collection"],
                filters=filters,
                once=question is not None,
                quiet=options["json"],
            )
            with workers():
                if question is None:
                    talk.run()
                else:
                    sys.exit(self._answer(talk, question))
        except (ConversationError, UnknownCollection) as error:
            raise CommandError(str(error)) from error

    def _answer(self, talk: Talk, question: str) -> int:
        code = talk.ask(question)
        if talk.quiet:
            self.stdout.write(json.dumps(talk.result, indent=2, ensure_ascii=False))
        return code

    def _take_own_documentation_in(self) -> None:
        """Take `docs/` in as `up` does, before there is anything to ask; go along if it is at it.

        A database that was given is left to whoever fills it.
        """
        if Collection.objects.exclude(name=OWN_DOCUMENTATION).exists():
            return
        if Document.objects.exists() and not intake([]):
            return
        self.console.print("Docent's own documentation is taken in first.")
        folder = str(settings.BASE_DIR / "docs")
        # All of it on standard error: what is asked for is the answer.
        call_command("ingest", folder, collection=OWN_DOCUMENTATION, stdout=sys.stderr)
        connection.close()
