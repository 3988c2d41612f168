"""Terminal talk: a conversation held in the terminal, with commands of its own beside questions."""

import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from agents import envelopes
from agents.models import Envelope
from agents.names import Role, Status
from conversations.answers import reply
from conversations.errors import ConversationError
from conversations.feedback import LONGEST_COMMENT, Rating, rate
from conversations.models import Assistant, Conversation, Message
from conversations.printed_reply import numbered, show_passage, show_reply, show_sources, way
from conversations.reach import chosen_collections
from conversations.services import ANY, Asker, Filters, ask, messages_after, wait
from conversations.terminal import MOST_MESSAGES, listen, watch
from knowledge.collections import intake
from knowledge.errors import KnowledgeError
from knowledge.models import Collection, Document

with suppress(ImportError):  # some Pythons are built without it
    import readline
CAN_EDIT = "readline" in sys.modules

ANSWERED, FAILED, CLARIFICATION, STOPPED = 0, 1, 3, 130
# Who sits at the terminal can add documents; a visitor only hears that there are none.
NOTHING_TO_READ = "No documents yet. Add some: python3 manage.py ingest PATH_OR_URL"
OPENING = "Ask a question. /help lists what else can be typed; /quit or Ctrl-D leaves."
EVERY = "all"
NOT_YET = "Nothing was answered yet."


class Refused(Exception):
    """What was typed cannot be done; the message says why."""


@dataclass(frozen=True)
class Typed:
    """A command of the terminal: what is said of it, and what it does with the words behind it."""

    usage: str
    help: str
    act: Callable[[str], None]


class Talk:
    """One person at a terminal, and the conversation they hold."""

    def __init__(
        self,
        console: Console,
        *,
        session: str = "",
        assistant: Assistant | None = None,
        collections: Sequence[str] = (),
        filters: Filters = ANY,
        once: bool = False,
        quiet: bool = False,
    ) -> None:
        self.console, self.once, self.quiet = console, once, quiet
        self.assistant, self.filters = assistant, filters
        self.session = session or str(uuid.uuid4())
        # None: from the next message on, none in particular.
        self.collections: Sequence[str] | None = collections
        self.turn: Envelope | None = None
        self.result: dict[str, Any] = {}
        self.listener: threading.Thread | None = None
        self.is_over = False
        self.commands = {each.usage.split()[0]: each for each in self._commands()}

    def _commands(self) -> tuple[Typed, ...]:
        return (
            Typed("/help", "this list", self._help),
            Typed("/new", "begin another conversation", self._new),
            Typed("/open N", "the passage of citation N, with the sentence marked", self._open),
            Typed("/sources", "where the last answer is written", self._sources),
            Typed("/why", "how the last reply came about", self._why),
            Typed("/again", "ask the last question again", self._again),
            Typed("/stop", "stop what is being answered; so does Ctrl-C", self._stop),
            Typed("/collection NAME", "answer from this one, or from all", self._collection),
            Typed("/history", "what was said in this conversation", self._history),
            Typed("/export FILE", "write the conversation to a file, as Markdown", self._export),
            Typed("/good COMMENT", "say that the last answer was right", self._good),
            Typed("/bad COMMENT", "say that it was not, and why", self._bad),
            Typed("/quit", "leave; the conversation stays", self._quit),
        )

    def run(self) -> None:
        """Take one line after another until the end of them, /quit, or Ctrl-C twice."""
        self.console.print(OPENING)
        self._prepare_lines()
        interrupted = False
        while not self.is_over:
            try:
                text = self._line().strip()
            except EOFError:
                break
            except KeyboardInterrupt:
                if interrupted:
                    break
                interrupted = True
                self.console.print("\nCtrl-C once more, or /quit, leaves.")
                continue
            interrupted = False
            if text:
                self._heed(text)
        self.console.print(Text(f"To go on with it: chat --session {self.session}", "dim"))

    def _line(self) -> str:
        if not sys.stdin.isatty():
            return input()
        # What is between 1 and 2 takes no room on the line, as readline has to know.
        return input("\001\033[1m\002You:\001\033[0m\002 " if CAN_EDIT else "You: ")

    def _prepare_lines(self) -> None:
        """Let earlier messages come back by the arrow keys, and the tab key complete commands."""
        if not (CAN_EDIT and sys.stdin.isatty()):
            return
        readline.clear_history()
        for message in self._said():
            if message.role == Message.Author.USER:
                readline.add_history(" ".join(message.text.split()))
        readline.set_completer_delims("")
        readline.set_completer(self._completion)
        readline.parse_and_bind("tab: complete")

    def _completion(self, begun: str, place: int) -> str | None:
        names = Collection.objects.order_by("name").values_list("name", flat=True)
        known = [*self.commands, *(f"/collection {name}" for name in (EVERY, *names))]
        connection.close()
        fitting = [each for each in known if begun and each.startswith(begun)]
        return fitting[place] if place < len(fitting) else None

    def _heed(self, text: str) -> None:
        """Do what was typed, and say in a line why not where that cannot be."""
        name, _, rest = text.partition(" ")
        try:
            # Others, such as /language, are the assistant's own.
            if command := self.commands.get(name.lower()):
                command.act(rest.strip())
            else:
                self.ask(self._chosen(text))
        except (ConversationError, KnowledgeError, Refused) as error:
            # Who sits here can mend what others are told nothing of.
            self.console.print(Text(getattr(error, "remedy", "") or str(error), "red"))
        connection.close()

    def _chosen(self, text: str) -> str:
        """Return what was typed, or the suggestion whose number it is."""
        actions = self.result.get("suggested_actions", ())
        # Few digits: what is longer is an invoice, or a year.
        number = int(text) if text.isdecimal() and len(text) <= 2 else 0
        return actions[number - 1] if 0 < number <= len(actions) else text

    def ask(self, text: str) -> int:
        """Ask and show the reply, and return the exit code for it; Ctrl-C stops the turn."""
        turn = ask(
            text,
            Asker(None),
            session=self.session,
            assistant=self.assistant.name if self.assistant else "",
            collections=self.collections,
            filters=self.filters,
        )
        try:
            if not self.quiet:
                watch(self.console, turn)
            turn = wait(turn)
        except KeyboardInterrupt:
            envelopes.cancel(turn.pk)
            turn = wait(turn)
        self.turn, self.result = turn, reply(turn)
        # A conversation keeps what it was bound to.
        self.collections = self.collections or ()
        self._show()
        return exit_code(self.result)

    def _show(self) -> None:
        result = self.result
        # Of those that the conversation is bound to, or of any.
        names = [str(name) for name in (self.turn.memory["collections"] if self.turn else ())]
        state = intake(names)
        if self.quiet:
            pass
        elif result["status"] == Status.CANCELLED:
            self.console.print(Text("Stopped.", "dim"))
        elif state and exit_code(result) != ANSWERED:
            self.console.print(f"Nothing in what is there so far. {state}; ask again in a moment.")
        else:
            show_reply(self.console, result, once=self.once)
            if state:
                self.console.print(f"{state}; this answer is from those.")
        if result["status"] == Status.WITH_STAFF:
            self._with_staff()
        elif not Document.objects.exists():
            self.console.print(NOTHING_TO_READ)

    def _with_staff(self) -> None:
        """Hear staff while one talks; who asked once is told how to come back."""
        if self.once or not sys.stdin.isatty():
            self.console.print(f"A person answers. Come back with: chat --session {self.session}")
        elif self.turn and not (self.listener and self.listener.is_alive()):
            self.console.print("[dim]A person answers; what they write appears here.[/]")
            told = (self.console, self.turn)
            self.listener = threading.Thread(target=listen, args=told, daemon=True)
            self.listener.start()

    def _conversation(self) -> Conversation | None:
        return Conversation.objects.filter(owner=None, session=self.session).first()

    def _said(self) -> list[Message]:
        conversation = self._conversation()
        return messages_after(conversation, None, most=MOST_MESSAGES) if conversation else []

    def _latest(self) -> tuple[Envelope, dict[str, Any]]:
        """Return the last turn and its reply, also of a conversation that is gone on with."""
        if self.turn is None and (conversation := self._conversation()):
            rows = Envelope.objects.filter(conversation_id=conversation.pk)
            if turn := rows.order_by("-create_ts").first():
                self.turn, self.result = turn, reply(turn)
        if self.turn is None:
            raise Refused(NOT_YET)
        return self.turn, self.result

    def _help(self, _: str) -> None:
        for each in self.commands.values():
            self.console.print(Text.assemble((f"  {each.usage:<18}", "cyan"), each.help))
        self.console.print(
            "A number asks what stands behind it. Everything else is sent, /language too."
        )

    def _new(self, _: str) -> None:
        self.session, self.turn, self.result = str(uuid.uuid4()), None, {}
        self.console.print("A new conversation.")

    def _open(self, number: str) -> None:
        turn, result = self._latest()
        _, citations = numbered(result)
        if not citations:
            raise Refused("The last reply cites nothing.")
        if not number.isdecimal() or not 0 < int(number) <= len(citations):
            raise Refused(f"Say which: /open 1 to /open {len(citations)}.")
        show_passage(self.console, turn, citations[int(number) - 1])

    def _sources(self, _: str) -> None:
        _, citations = numbered(self._latest()[1])
        show_sources(self.console, citations)
        if not citations:
            raise Refused("The last reply cites nothing.")

    def _why(self, _: str) -> None:
        for sentence in way(*self._latest()):
            self.console.print(Text(f"· {sentence}"), soft_wrap=True)
        self.console.print()

    def _again(self, _: str) -> None:
        self.ask(str(self._latest()[0].memory["text"]))

    def _stop(self, _: str) -> None:
        """Another terminal, or this one before, may have asked."""
        conversation = self._conversation()
        rows = Envelope.objects.filter(status=Status.RUNNING)
        turns = rows.filter(conversation_id=conversation.pk) if conversation else rows.none()
        if not [turn for turn in turns if envelopes.cancel(turn.pk)]:
            raise Refused("Nothing is being answered.")
        self.console.print("Stopped.")

    def _collection(self, name: str) -> None:
        there = ", ".join(Collection.objects.order_by("name").values_list("name", flat=True))
        if not name:
            raise Refused(f"Say which: {there or 'there is none yet'}; {EVERY} is every one.")
        if name == EVERY:
            self.collections = None
            self.console.print("From every collection, from your next message on.")
            return
        try:
            chosen_collections(self.assistant, [name])
        except ConversationError as error:
            raise Refused(f"{error} There are: {there or 'none yet'}.") from error
        self.collections = [name]
        self.console.print(f"From {name}, from your next message on.")

    def _history(self, _: str) -> None:
        said = self._said()
        for message in said:
            name = escape(f"{message.created:%Y-%m-%d %H:%M} {message.role}")
            self.console.print(f"[dim]{name}:[/] {escape(message.text)}")
        if not said:
            raise Refused("Nothing was said yet.")

    def _export(self, path: str) -> None:
        said = self._said()
        if not path or not said:
            raise Refused("Say to which file: /export FILE" if said else "Nothing was said yet.")
        parts = [f"# Conversation {self.session}"]
        parts += [
            f"## {each.role.capitalize()}, {each.created:%Y-%m-%d %H:%M} UTC\n\n{each.text}"
            for each in said
        ]
        file = Path(path).expanduser()
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write("\n\n".join(parts) + "\n")
        except FileExistsError as error:
            raise Refused(f"{file} is there already: choose another name.") from error
        except OSError as error:
            raise Refused(f"{file} cannot be written: {error.strerror}.") from error
        self.console.print(f"{len(said)} messages are in {escape(str(file))}.", soft_wrap=True)

    def _good(self, comment: str) -> None:
        self._rate(Rating.UP, comment)

    def _bad(self, comment: str) -> None:
        self._rate(Rating.DOWN, comment)

    def _rate(self, rating: Rating, comment: str) -> None:
        if len(comment) > LONGEST_COMMENT:
            raise Refused(f"A comment has at most {LONGEST_COMMENT:,} characters.")
        rate(self._latest()[0], None, rating, comment)
        self.console.print("Noted. It is in the admin, under Feedback.")

    def _quit(self, _: str) -> None:
        self.is_over = True


def exit_code(result: dict[str, Any]) -> int:
    """Return 0 for an answer, 3 for a question back, 130 for a stop, 1 for what came to nothing."""
    if result["status"] == Status.CANCELLED:
        return STOPPED
    is_open = result["status"] in {Status.AWAITING_USER, Status.WITH_STAFF}
    if is_open or result["last_agent"] == Role.CLARIFICATION:
        return CLARIFICATION
    return ANSWERED if result["status"] == Status.COMPLETED else FAILED
