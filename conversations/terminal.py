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
from agents.names import SPECIALISTS
from agents.steps import events, presence
from conversations.errors import UnknownMessage
from conversations.interface import STEPS
from conversations.models import Conversation, Message
from conversations.services import current, longest_wait, messages_after
from knowledge.management.console import Lines

# Lines of the terminal that are left to what stands around the answer.
MARGIN_LINES = 4
LISTEN_SECONDS = 1.0
MOST_MESSAGES = 10_000


class Progress:
    """What is known of a turn so far, drawn anew with each event."""

    def __init__(self) -> None:
        self.plan: list[list[str]] = []  # specialists, those of one step together
        self.done: set[str] = set()
        self.activity = "Asking"
        self.answer = ""
        self.note = ""
        self._spinner = Spinner("dots")

    def add(self, name: str, data: dict[str, Any]) -> None:
        """Take note of one event."""
        role = str(data.get("role", ""))
        if name == "agent_start":
            self.activity = STEPS.get(role, self.activity)
            if data["attempt"] > 1:
                self.note = f"{role} begins again, attempt {data['attempt']}"
        elif name == "tool_call_start":
            self.activity = f"{STEPS.get(role, role)}: {data['tool'] or 'a tool that is not there'}"
        elif name == "agent_complete":
            self.done |= {role} & {*SPECIALISTS}
            self.plan = data.get("plan") or self.plan
        elif name == "token":
            if data["replaces"]:
                self.note = "the answer is written again"
            self.answer = data["text"] if data["replaces"] else self.answer + data["text"]

    @property
    def line(self) -> str:
        """What is being done, in one line."""
        planned = [role for step in self.plan for role in step]
        far = f"{len(self.done)} of {len(planned)} specialists are done" if planned else ""
        return ", ".join(filter(None, (f"{self.activity} …", self.note, far)))

    def plan_line(self) -> str:
        """Who works on an analysis, in which order, and who is done; empty without a plan."""
        steps = (" + ".join(map(self._specialist, step)) for step in self.plan)
        return f"Plan: {' → '.join(steps)}" if self.plan else ""

    def _specialist(self, role: str) -> str:
        name = role.replace("_", " ")
        return f"{name} ✓" if role in self.done else name

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what is going on, and below it the end of the answer."""
        self._spinner.update(text=Text(self.line, "dim"))
        parts: list[RenderableType] = [self._spinner]
        if self.plan:
            parts.append(Text(self.plan_line(), "dim"))
        if self.answer:
            lines = Text(self.answer).wrap(console, options.max_width)
            parts += lines[-max(1, console.height - MARGIN_LINES) :]
        yield Group(*parts)


def watch(console: Console, envelope: Envelope) -> None:
    """Show the turn until it ends: one line drawn anew, or plain lines on standard error.

    What is written while it goes on is not checked yet: it disappears, and the reply comes after.
    """
    progress = Progress()
    if console.is_terminal:
        with Live(progress, console=console, transient=True, refresh_per_second=10):
            for name, data in _happening(envelope):
                progress.add(name, data)
    else:
        lines = Lines(Console(stderr=True))
        for name, data in _happening(envelope):
            progress.add(name, data)
            lines.tell(progress.line)
    if progress.plan:
        console.print(Text(progress.plan_line(), "dim"))


def _happening(envelope: Envelope) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a turn until it ends; one without a name for each second without any."""
    for event in events.follow(envelope.target_list, seconds=longest_wait(envelope)):
        if event is None:
            if current(envelope).ended:
                return
            yield "", {}
            continue
        _, name, data = event
        if name == "workflow_complete":
            return
        yield name, data


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
