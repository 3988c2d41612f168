"""chat: talks with the assistant in the terminal."""

import json
import sys
import threading
import uuid
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from rich.console import Console
from rich.markdown import Markdown

from agents.models import Envelope
from agents.names import Role, Status
from conversations.answers import reply
from conversations.api import SESSION
from conversations.errors import ConversationError
from conversations.reach import assistant_named, chosen_collections
from conversations.services import Asker, Filters, ask, checked, wait
from conversations.terminal import listen, watch, workers
from knowledge.collections import OWN_DOCUMENTATION, collections_named, intake
from knowledge.errors import UnknownCollection
from knowledge.models import Collection, Document

ANSWERED, FAILED, CLARIFICATION = 0, 1, 3
# Who sits at the terminal can add documents; a visitor only hears that there are none.
NOTHING_TO_READ = "No documents yet. Add some: python3 manage.py ingest PATH_OR_URL"


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
        self.options = options
        self.listener: threading.Thread | None = None
        session = options["session"] or str(uuid.uuid4())
        try:
            self.filters = Filters(options["language"], options["audience"])
            if not SESSION.match(session):
                raise CommandError("--session takes 1 to 64 letters, digits, '.', ':', '_' or '-'.")
            if options["question"] is not None:
                checked(options["question"])
            if settings.IS_EMBEDDED:
                self._take_own_documentation_in()
            assistant = assistant_named(options["assistant"]) if options["assistant"] else None
            if assistant:
                chosen_collections(assistant, options["collection"])
            else:
                collections_named(options["collection"])
            with workers():
                if options["question"] is not None:
                    sys.exit(self._ask(options["question"], session))
                self._talk(session)
        except (ConversationError, UnknownCollection) as error:
            raise CommandError(str(error)) from error

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

    def _talk(self, session: str) -> None:
        self.console.print("Ask a question; an empty line or Ctrl-D ends the conversation.")
        while True:
            try:
                text = self.console.input("[bold]You:[/] ")
            except (EOFError, KeyboardInterrupt):
                break
            if not text.strip():
                break
            self._ask(text, session)

    def _ask(self, text: str, session: str) -> int:
        envelope = ask(
            text,
            Asker(None),
            session=session,
            assistant=self.options["assistant"],
            collections=self.options["collection"],
            filters=self.filters,
        )
        if not self.options["json"]:
            watch(self.console, envelope)
        result = reply(wait(envelope))
        state, code = intake(self.options["collection"]), exit_code(result)
        if self.options["json"]:
            self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False))
        elif state and code != ANSWERED:
            self.console.print(f"Nothing in what is there so far. {state}; ask again in a moment.")
        else:
            self._show(result)
            if state:
                self.console.print(f"{state}; this answer is from those.")
        if result["status"] == Status.WITH_STAFF:
            self._listen(envelope, session)
        elif not Document.objects.exists():
            self.console.print(NOTHING_TO_READ)
        return code

    def _listen(self, envelope: Envelope, session: str) -> None:
        """Let who sits here hear staff: now, where they stay, or when they come back."""
        if self.options["question"] is not None:
            self.console.print(f"A person answers. Come back with: chat --session {session}")
        elif not (self.listener and self.listener.is_alive()):
            self.console.print("[dim]A person answers; what they write appears here.[/]")
            told = (self.console, envelope)
            self.listener = threading.Thread(target=listen, args=told, daemon=True)
            self.listener.start()

    def _show(self, result: dict[str, Any]) -> None:
        self.console.print(Markdown(result["reply"]))
        for action in result["suggested_actions"]:
            self.console.print(f"  [cyan]→[/] {action}")
        self.console.print(
            f"[dim]{result['status']}, {result['mode']}, {result['usage']['seconds']} s"
            f"{_spent(result)}, turn {result['turn_id']}[/]\n"
        )


def _spent(result: dict[str, Any]) -> str:
    """What models took for it; nothing when none was asked."""
    usage = result["usage"]
    if not usage["model_calls"] + usage["cached_calls"]:
        return ""
    cost = "cost not known" if usage["cost"] is None else f"{usage['cost']:.6f} USD"
    return f", {usage['model_calls']} model calls, {usage['cached_calls']} cached, {cost}"


def exit_code(result: dict[str, Any]) -> int:
    """Return 0 for an answer, 3 for a question back, 1 for a turn that came to nothing."""
    is_open = result["status"] in {Status.AWAITING_USER, Status.WITH_STAFF}
    if is_open or result["last_agent"] == Role.CLARIFICATION:
        return CLARIFICATION
    return ANSWERED if result["status"] == Status.COMPLETED else FAILED
