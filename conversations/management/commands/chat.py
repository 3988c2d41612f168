"""chat: talks with the assistant in the terminal."""

import json
import sys
import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.markdown import Markdown

from agents import events
from agents.models import Envelope
from agents.names import Role, Status
from conversations.crew import crew
from conversations.errors import ConversationError
from conversations.reply import reply
from conversations.serializers import SESSION
from conversations.services import Asker, as_it_stands, ask, patience, usable, wait
from knowledge.collections import named
from knowledge.errors import UnknownCollection

ANSWERED, FAILED, CLARIFICATION = 0, 1, 3


class Command(BaseCommand):
    """Asks one question, or holds a conversation until the user leaves."""

    help = "Talk in the terminal; with -q ask once. Exit code: 0 answered, 3 asked back, 1 failed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add -q, --json, --session and --collection."""
        parser.add_argument("-q", "--question", help="ask this once and leave")
        parser.add_argument("--json", action="store_true", help="the answer as POST /api/chat/")
        parser.add_argument("--session", default="", help="continue the conversation of this name")
        parser.add_argument(
            "--collection", action="append", default=[], help="answer from this one (repeatable)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask once, or again and again."""
        self.console = Console(stderr=options["json"])
        self.options = options
        session = options["session"] or str(uuid.uuid4())
        try:
            named(options["collection"])
            if not SESSION.match(session):
                raise CommandError("--session takes 1 to 64 letters, digits, '.', ':', '_' or '-'.")
            if options["question"] is not None:
                usable(options["question"])
            with crew(self.console):
                if options["question"] is not None:
                    sys.exit(self._ask(options["question"], session))
                self._talk(session)
        except (ConversationError, UnknownCollection) as error:
            raise CommandError(str(error)) from error

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
        envelope = ask(text, Asker(None), session=session, collections=self.options["collection"])
        if not self.options["json"]:
            self._show_steps(envelope)
        said = reply(wait(envelope))
        if self.options["json"]:
            self.stdout.write(json.dumps(said, indent=2, ensure_ascii=False))
        else:
            self._show(said)
        return exit_code(said)

    def _show_steps(self, envelope: Envelope) -> None:
        """Name each agent while it works."""
        done: list[str] = []
        with self.console.status("asking") as status:
            for event in events.follow(envelope.target_list, seconds=patience(envelope)):
                if event is None:
                    if as_it_stands(envelope).ended:
                        break
                    continue
                _, name, data = event
                if name == "agent_start":
                    status.update(f"{data['role']} …")
                elif name == "agent_complete":
                    done.append(f"{data['role']} {data['seconds'] * 1000:.0f} ms")
                elif name == "workflow_complete":
                    break
        self.console.print(f"[dim]{' · '.join(done)}[/]")

    def _show(self, said: dict[str, Any]) -> None:
        self.console.print(Markdown(said["reply"]))
        for action in said["suggested_actions"]:
            self.console.print(f"  [cyan]→[/] {action}")
        self.console.print(
            f"[dim]{said['status']}, {said['mode']}, {said['usage']['seconds']} s, "
            f"turn {said['turn_id']}[/]\n"
        )


def exit_code(said: dict[str, Any]) -> int:
    """Return 0 for an answer, 3 for a question back, 1 for a turn that came to nothing."""
    if said["status"] == Status.AWAITING_USER or said["last_agent"] == Role.CLARIFICATION:
        return CLARIFICATION
    return ANSWERED if said["status"] == Status.COMPLETED else FAILED
