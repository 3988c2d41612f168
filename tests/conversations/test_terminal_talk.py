"""A talk in the terminal: its commands, citations by number, choices by number, and stops."""

import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from rich.console import Console

from agents.models import Envelope
from agents.names import Status
from conversations import terminal_talk
from conversations.models import Conversation, Feedback, Message
from conversations.printed_reply import numbered
from conversations.services import current
from conversations.terminal_talk import Talk
from tests import factories

PASSAGE = "# Leave\n\nDays are taken in summer. Unused days\nend in **March**. Ask Ann."
CITED: dict[str, Any] = {
    "response": "They end. [C2] So does `[C2]`. Ask. [C1]",
    "citations_used": [
        factories.CITATION | {"marker": "C1", "chunk_id": 7, "quote": "Ask.", "edition": ""},
        factories.CITATION
        | {"marker": "C2", "quote": "Unused days end in March. [C2]", "edition": "2026"},
    ],
    "source_references": [{"marker": "C2", "text": PASSAGE}],
    "canonical_question": "Do unused days of leave end?",
    "language": "en",
}


class Typist:
    """Types lines, and reads what the terminal then says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch
        self.talk = Talk(Console(file=StringIO(), width=100), session="desk")

    def types(self, *lines: str | type[BaseException]) -> str:
        """Return what is printed until the last of the lines is done."""
        left = iter(lines)

        def line() -> str:
            each = next(left, EOFError)
            if isinstance(each, str):
                return each
            raise each

        self.patch.setattr("builtins.input", line)
        self.talk.console = Console(file=StringIO(), width=100)
        self.talk.is_over = False
        self.talk.run()
        file = self.talk.console.file
        assert isinstance(file, StringIO)
        return file.getvalue()


@pytest.fixture
def typist(db: None, monkeypatch: pytest.MonkeyPatch) -> Typist:
    monkeypatch.setattr(sys, "stdin", StringIO())
    # Everything of a test is in one transaction.
    monkeypatch.setattr(connection, "close", lambda: None)
    return Typist(monkeypatch)


@pytest.fixture
def answered(typist: Typist) -> Envelope:
    """A turn of this conversation that has an answer with two citations."""
    return factories.turn(factories.conversation("desk"), **CITED)


@pytest.mark.usefixtures("answered")
def test_citations_are_numbered_as_they_come_and_listed_with_their_version(typist: Typist) -> None:
    said = typist.types("/sources")
    assert "[1] Holidays — Leave > Carry over, version 2026 (verified)" in said
    assert "[2] Holidays — Leave > Carry over, version 3 (verified)" in said
    assert numbered(typist.talk.result)[0] == "They end. [1] So does `[C2]`. Ask. [2]"


@pytest.mark.usefixtures("answered")
def test_a_citation_opens_with_its_sentence_marked(typist: Typist) -> None:
    said = typist.types("/open 1")
    assert "in summer. »Unused days\nend in **March«**. Ask Ann." in said
    assert "»Ask«." in typist.types("/open 2")
    assert "Say which: /open 1 to /open 2." in typist.types("/open 3")


def test_why_tells_the_way_of_a_turn(typist: Typist, answered: Envelope) -> None:
    said = typist.types("/why")
    assert "It was understood as: Do unused days of leave end?" in said
    assert "The message was taken for English." in said
    assert "2 verified" in said
    assert str(answered.pk) in said


def test_a_thumb_and_its_comment_are_kept_once(typist: Typist, answered: Envelope) -> None:
    typist.types("/good", "/bad it is out of date")
    feedback = Feedback.objects.get(turn=answered)
    assert (feedback.rating, feedback.comment, feedback.by) == ("down", "it is out of date", None)


@pytest.mark.usefixtures("answered")
def test_a_conversation_is_read_exported_and_left_for_another(
    typist: Typist, tmp_path: Path
) -> None:
    file = tmp_path / "talk.md"
    said = typist.types("/history", f"/export {file}", f"/export {file}", "/new", "/history")
    assert "user: Do unused days end?" in said
    assert "is there already" in " ".join(said.split())
    assert file.read_text().startswith("# Conversation desk\n\n## User, ")
    assert said.split("A new conversation.")[1].strip().startswith("Nothing was said yet.")
    assert typist.talk.session != "desk"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/open 1", "Nothing was answered yet."),
        ("/again", "Nothing was answered yet."),
        ("/stop", "Nothing is being answered."),
        ("/collection", "Say which: handbook; all is every one."),
        ("/collection tea", "There is no collection 'tea' here. There are: handbook."),
        ("/export", "Nothing was said yet."),
        ("/help", "/open N"),
        ("hello?", "No worker listens"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_and_the_talk_goes_on(
    typist: Typist, typed: str, told: str
) -> None:
    factories.collection()
    said = typist.types(typed, "/history")
    assert told in said
    assert "Nothing was said yet." in said


def test_ctrl_c_leaves_the_second_time_only(typist: Typist) -> None:
    said = typist.types(
        KeyboardInterrupt, "/history", KeyboardInterrupt, KeyboardInterrupt, "/help"
    )
    assert said.count("Ctrl-C once more") == 2
    assert "/open N" not in said


def test_a_turn_of_another_terminal_is_stopped(typist: Typist) -> None:
    turn = factories.turn(factories.conversation("desk"), status=Status.RUNNING)
    assert "Stopped." in typist.types("/stop")
    turn.refresh_from_db()
    assert turn.status == Status.CANCELLED


@pytest.fixture
def replying(typist: Typist, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have a reply come as soon as something is asked, or a Ctrl-C instead of it."""

    def set_reply(status: Status = Status.COMPLETED, *, stops: bool = False, **more: Any) -> None:
        def ask(text: str, *_: object, session: str, collections: Any, **__: object) -> Envelope:
            talk, _new = Conversation.objects.get_or_create(session=session)
            bound = list(collections or ())
            turn = factories.turn(talk, text, status=Status.RUNNING if stops else status, **more)
            turn.memory |= {"collections": bound}
            turn.save()
            return turn

        def watch(*_: object) -> None:
            if stops:
                raise KeyboardInterrupt

        monkeypatch.setattr(terminal_talk, "ask", ask)
        monkeypatch.setattr(terminal_talk, "watch", watch)
        # In a transaction that is never committed nobody rings that a turn has ended.
        monkeypatch.setattr(terminal_talk, "wait", current)

    return set_reply


def asked() -> list[str]:
    rows = Message.objects.filter(role="user").order_by("created")
    return list(rows.values_list("text", flat=True))


def test_a_suggestion_is_chosen_by_its_number(
    typist: Typist, replying: Callable[..., None]
) -> None:
    reason = {"clarification_reason": "ambiguous_query"}
    replying(Status.AWAITING_USER, suggested_actions=["In Canada", "In Chile"], **reason)
    said = typist.types("Where?", "2", "3", "100", "/again")
    assert "1  In Canada" in said
    assert asked() == ["Where?", "In Chile", "3", "100", "100"]


def test_ctrl_c_stops_the_turn_and_not_the_talk(
    typist: Typist, replying: Callable[..., None]
) -> None:
    replying(stops=True)
    said = typist.types("Long?", "/history")
    assert "Stopped." in said
    assert "user: Long?" in said
    assert Envelope.objects.get().status == Status.CANCELLED


def test_a_collection_is_chosen_for_what_follows(
    typist: Typist, replying: Callable[..., None]
) -> None:
    replying()
    factories.collection()
    typist.types("/collection handbook", "One?", "/collection all", "Two?")
    turns = Envelope.objects.order_by("create_ts")
    assert [turn.memory["collections"] for turn in turns] == [["handbook"], []]
