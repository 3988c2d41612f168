"""Terminal: a turn shown while it happens, and staff as they write; workers where none run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connection
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.text import Text

from agents import lent_worker
from agents.models import Envelope
from agents.steps import events, presence
from conversations.errors import UnknownMessage
from conversations.models import Conversation, Message
from conversations.services import current, longest_wait, messages_after

# Lines of the terminal that are left to what stands around the answer.
MARGIN_LINES = 4
LISTEN_SECONDS = 1.0
MOST_MESSAGES = 10_000


class Progress:
    """What is known of a turn so far, drawn anew with each event."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.activity = "asking"
        self.answer = ""
        self.note = ""
        self._spinner = Spinner("dots")

    def add(self, name: str, data: dict[str, Any]) -> None:
        """Take note of one event."""
        if name == "agent_start":
            self.activity = f"{data['role']} …"
            if data["attempt"] > 1:
                self.note = f"{data['role']} begins again, attempt {data['attempt']}"
        elif name == "tool_call_start":
            self.activity = f"{data['role']}: {data['tool'] or 'a tool that is not there'} …"
        elif name == "agent_complete":
            self.done.append(f"{data['role']} {data['seconds'] * 1000:.0f} ms")
            if data.get("plan"):
                steps = [" + ".join(step) for step in data["plan"]]
                self.note = "plan: " + " → ".join(steps)
        elif name == "token":
            if data["replaces"]:
                self.note = "the answer is written again"
            self.answer = data["text"] if data["replaces"] else self.answer + data["text"]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what is going on, and below it the end of the answer."""
        self._spinner.update(text=Text(f"{self.activity}  {self.note}".strip(), "dim"))
        parts: list[RenderableType] = [self._spinner]
        if self.answer:
            lines = Text(self.answer).wrap(console, options.max_width)
            parts += lines[-max(1, console.height - MARGIN_LINES) :]
        yield Group(*parts)


def watch(console: Console, envelope: Envelope) -> None:
    """Show the turn until it ends, then only how long each step took.

    What is written while it goes on is not checked yet: it disappears, and the reply comes after.
    """
    progress = Progress()
    with Live(progress, console=console, transient=True, refresh_per_second=10):
        for event in events.follow(envelope.target_list, seconds=longest_wait(envelope)):
            if event is None:
                if current(envelope).ended:
                    break
                continue
            _, name, data = event
            if name == "workflow_complete":
                break
            progress.add(name, data)
    console.print(Text(" · ".join(progress.done), "dim"))
    if progress.note:
        console.print(Text(progress.note, "dim"))


def listen(console: Console, turn: Envelope) -> None:
    """Print what staff write after a turn, until the conversation is not with them any more.

    It is for a thread of its own: who sits here may be writing meanwhile.
    """
    conversation = Conversation(pk=turn.conversation_id)
    with_staff = Conversation.objects.filter(
        pk=conversation.pk, status=Conversation.Status.WITH_STAFF
    )
    heard = Message.objects.filter(turn=turn).order_by("-created").values_list("pk", flat=True)[0]
    while True:
        is_over = not with_staff.exists()
        try:
            for message in messages_after(conversation, heard, most=MOST_MESSAGES):
                if message.role == Message.Author.STAFF:
                    console.print(f"\n[bold green]Staff:[/] {escape(message.text)}")
                heard = message.pk
        except UnknownMessage:
            is_over = True  # forgotten
        connection.close()
        if is_over:
            console.print("\n[dim]The assistant answers again.[/]")
            return
        time.sleep(LISTEN_SECONDS)


@contextmanager
def workers() -> Iterator[None]:
    """Have a consumer for every queue during the block: this process, where others are missing."""
    with lent_worker.working() if presence.missing_roles() else nullcontext():
        yield
