"""The terminal shows an answer while it is written, and only as much of it as fits."""

import threading
import time
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings
from rich.console import Console

from agents.names import Status
from conversations import handover, terminal
from conversations.terminal import Progress
from tests import factories


def drawn(progress: Progress) -> str:
    console = Console(width=40, height=8, file=StringIO(), force_terminal=True, color_system=None)
    console.print(progress)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def token(text: str, *, replaces: bool = False) -> dict[str, Any]:
    return {"step": 9, "attempt": 1, "text": text, "replaces": replaces}


@pytest.mark.django_db(transaction=True)
def test_staff_are_heard_while_they_write_and_until_they_give_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HANDOVER = True
    monkeypatch.setattr(terminal, "LISTEN_SECONDS", 0.01)
    talk = factories.conversation("s")
    turn = factories.turn(talk, "A human!", status=Status.WITH_STAFF, small_talk="person")
    row, anna = talk.handovers.get(), User.objects.create_user("anna")
    console = Console(file=StringIO(), width=60)
    assert isinstance(console.file, StringIO)
    listener = threading.Thread(target=terminal.listen, args=(console, turn))
    listener.start()
    handover.say(row.pk, anna, "Hello [there]")
    while listener.is_alive() and "Hello [there]" not in console.file.getvalue():
        time.sleep(0.01)
    handover.close(row.pk, anna, seen=None)
    listener.join(20)
    told = console.file.getvalue()
    assert told.split("\n") == ["", "Staff: Hello [there]", "", "The assistant answers again.", ""]


def test_the_answer_grows_with_its_pieces() -> None:
    progress = Progress()
    progress.add("agent_start", {"role": "response", "attempt": 1})
    progress.add("token", token("Unused "))
    progress.add("token", token("days end."))
    assert "Writing the answer …" in drawn(progress)
    assert "Unused days end." in drawn(progress)


def test_an_answer_that_is_sent_back_disappears_and_it_says_why() -> None:
    progress = Progress()
    progress.add("token", token("Wrong."))
    progress.add("token", token("Right.", replaces=True))
    assert "Wrong." not in drawn(progress)
    assert "Right." in drawn(progress)
    assert "written again" in drawn(progress)


def test_a_step_that_begins_again_says_so() -> None:
    progress = Progress()
    progress.add("agent_start", {"role": "response", "attempt": 2})
    assert "response begins again, attempt 2" in " ".join(drawn(progress).split())


def test_of_an_analysis_the_plan_is_shown_and_who_is_done() -> None:
    progress = Progress()
    plan = [["extractor", "classifier"], ["gap_synthesizer"]]
    progress.add("agent_complete", {"role": "orchestrator", "plan": plan})
    progress.add("agent_start", {"role": "classifier", "attempt": 1})
    progress.add("agent_complete", {"role": "extractor"})
    assert progress.plan_line() == "Plan: extractor ✓ + classifier → gap synthesizer"
    assert progress.line == "Sorting the documents …, 1 of 3 specialists are done"


def test_of_a_long_answer_the_end_is_seen() -> None:
    progress = Progress()
    progress.add("token", token("".join(f"line {number}\n" for number in range(50))))
    shown = drawn(progress)
    assert "line 49" in shown
    assert "line 9\n" not in shown
    assert len(shown.splitlines()) <= 8


def test_brackets_in_an_answer_are_no_markup() -> None:
    progress = Progress()
    progress.add("token", token("See [C1] and [/nothing]."))
    assert "[C1] and [/nothing]." in drawn(progress)
