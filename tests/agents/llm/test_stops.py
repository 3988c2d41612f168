"""What is asked for a turn that has ended is broken off, and nothing more is asked for it."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection

from agents import envelopes
from agents.llm import client, journal
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.outcomes import Outcome
from agents.llm.requests import Choice
from agents.llm.stops import STOPS, TurnEnded, stop_command
from agents.models import Envelope, ModelCall
from agents.names import Status
from agents.steps import events
from prompts.prompt import Prompt
from tests import factories
from tests.agents.llm.probe import request
from tests.scripted import Call, Response, Scripted, scripted

LONG = Response("word " * 2000, seconds=120, first_after=0.0)
PATIENCE_SECONDS = 30.0
Begin = Callable[..., "Future[object]"]


@pytest.fixture
def models() -> Iterator[Scripted]:
    """A server that writes for two minutes."""
    with scripted() as server:
        server.says("probe", LONG)
        yield server


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Do something in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def asked(models: Scripted) -> Call:
    until(lambda: models.server.ledger)
    return models.server.ledger[0]


def test_a_call_ends_with_its_turn_and_its_provider_is_told(models: Scripted, begin: Begin) -> None:
    turn, heard = str(uuid.uuid4()), threading.Event()
    said = begin(client.send, request(), seconds=100, turn=turn, on_text=lambda _: heard.set())
    assert heard.wait(PATIENCE_SECONDS)
    events.send([stop_command(turn)])
    assert isinstance(said.exception(PATIENCE_SECONDS), TurnEnded)
    call = asked(models)
    until(lambda: call.left)
    assert call.ended is None


def test_for_a_turn_that_has_ended_nobody_is_asked(models: Scripted) -> None:
    turn = str(uuid.uuid4())
    STOPS.stop(turn)
    with pytest.raises(TurnEnded):
        client.send(request(), seconds=5, turn=turn)
    models.says("probe", Response("yes"))
    assert client.send(request(), seconds=5, turn=str(uuid.uuid4())).text == "yes"


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_turn_leaves_a_call_that_may_have_been_paid(
    models: Scripted, begin: Begin, probe: Prompt
) -> None:
    turn = factories.turn(factories.conversation(), status=Status.RUNNING)
    subject = Subject(f"{turn.pk}/1", "response", envelope_id=turn.pk)
    llm = Model(Choice("fake@scripted", timeout=100), subject)

    def write() -> object:
        try:
            return llm.write(probe, question="Which?", hour="noon")
        finally:
            connection.close()

    said = begin(write)
    asked(models)
    assert envelopes.cancel(turn.pk)
    assert isinstance(said.exception(PATIENCE_SECONDS), TurnEnded)
    row = ModelCall.objects.get()
    assert (row.outcome, row.error) == (Outcome.LOST, journal.STOPPED)
    assert row.input_tokens
    assert len(models.server.ledger) == 1
    assert Envelope.objects.get().status == Status.CANCELLED
