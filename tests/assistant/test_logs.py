"""Logs: what stands on a line, in both forms, in whatever thread it is written."""

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from io import StringIO
from logging.config import dictConfig
from uuid import uuid4

import httpx2
import pytest
import uvicorn
from celery import current_app
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings
from rich.console import Console

from agents.contract import REGISTRY
from agents.errors import AgentError
from agents.manager import route
from agents.models import Fault
from agents.names import Role
from agents.steps.steps import perform_in_batches, perform_one_by_one, run_agent
from agents.trace import correlation
from assistant import asgi
from assistant.local.processes import Child
from assistant.logs import to_stderr
from tests.conftest import Begin

SPAN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    """What is written to standard error in JSON, from INFO on."""
    stream = StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    dictConfig(to_stderr(logging.INFO, "json"))
    yield stream
    root.handlers, root.level = before, level


def lines(stream: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_object_however_many_lines_the_message_has(written: StringIO) -> None:
    (ours,) = (
        each for each in logging.getLogger().handlers if getattr(each, "stream", None) is written
    )
    try:
        int("x")
    except ValueError:
        # To this handler alone: pytest would hand on what it cannot encode.
        wrong = ("a.b", logging.ERROR, __file__, 1, "one\ntwo %s", ("\udc80",), sys.exc_info())
        ours.handle(logging.LogRecord(*wrong))
    (line,) = lines(written)
    assert (line["level"], line["logger"], line["message"]) == ("ERROR", "a.b", "one\ntwo \udc80")
    assert str(line["time"]).endswith("+00:00")
    exception = line["exception"]
    assert isinstance(exception, dict)
    assert exception["type"] == "ValueError"
    assert exception["traceback"].startswith("Traceback")


def test_a_line_of_a_step_says_which_it_is_and_one_after_it_does_not(
    written: StringIO, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = begin()

    def fail(*_: object) -> None:
        logging.getLogger("agent").warning("at work")
        raise AgentError("broken")

    perform_in_batches(Role.MANAGER, route)
    monkeypatch.setattr(REGISTRY[Role.LANG], "perform", fail)
    envelope.steps.filter(role=Role.LANG).update(attempt=2)
    perform_one_by_one(Role.LANG, run_agent)
    logging.getLogger("agent").warning("at rest")
    turn = {"conversation": str(envelope.conversation_id), "turn": str(envelope.pk)}
    names: dict[str, object] = {**turn, "role": "lang", "step": 2, "attempt": 3}
    working, fault, resting = lines(written)
    assert names.items() <= working.items()
    assert names.items() <= fault.items()
    assert fault["error_id"] == Fault.objects.get().code
    exception = fault["exception"]
    assert isinstance(exception, dict)
    assert (exception["type"], exception["message"]) == ("AgentError", "broken")
    assert resting.get("turn") != str(envelope.pk)


def test_the_context_reaches_threads_and_tasks_that_are_begun_in_it() -> None:
    async def told() -> object:
        return correlation.current()["turn"]

    before = correlation.current()
    with correlation.about(turn=1):
        with correlation.about(step=2):
            assert correlation.current() == before | {"turn": 1, "step": 2}
        assert correlation.current() == before | {"turn": 1}
        assert asyncio.run(told()) == 1
    assert correlation.current() == before


def test_celery_leaves_the_log_as_it_is(written: StringIO) -> None:
    current_app.log.setup_logging_subsystem(loglevel="INFO")
    logging.getLogger("celery.task").info("taken")
    (line,) = lines(written)
    assert (line["logger"], line["message"]) == ("celery.task", "taken")


def test_what_others_write_in_json_is_passed_on_as_it_is(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.LOG_FORMAT = "json"
    script = "import os; print(os.environ['DOCENT_PROCESS'], '{}' * 99)"
    child = Child("agents", [sys.executable, "-c", script], "cyan")
    child.begin(Console(stderr=True))
    assert child.process is not None
    with child.process:
        child.printer.join()
    assert capsys.readouterr().err == "agents " + "{}" * 99 + "\n"


@pytest.mark.django_db
def test_a_request_that_was_refused_is_a_line_without_a_traceback(
    written: StringIO, client: Client
) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert client.get("/admin/queues/").status_code == HTTPStatus.FORBIDDEN
    assert client.get("/healthz", headers={"host": "nowhere"}).status_code == HTTPStatus.BAD_REQUEST
    client.get("/widget/0123456789abcde/de/s3cret-token-of-a-frame/admin/")
    told = [line for line in lines(written) if str(line["logger"]).startswith("django")]
    assert len(told) == 3
    assert "s3cret" not in written.getvalue()
    assert not any("exception" in line for line in told)


@pytest.mark.django_db(transaction=True)
def test_the_line_of_a_request_names_its_turn_and_not_what_was_asked(written: StringIO) -> None:
    config = uvicorn.Config(
        asgi.application, port=0, log_config=None, log_level=logging.INFO, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    turn = uuid4()
    while not server.started:
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
        client.get(f"/api/turns/{turn}/?q=secret", headers={"traceparent": SPAN})
        client.get("/healthz", headers={"traceparent": "00-x"})
    server.should_exit = True
    thread.join()
    requests = {
        str(line["message"]).split('"')[1]: (line.get("turn"), line.get("traceparent"))
        for line in lines(written)
        if line["logger"] == "uvicorn.access"
    }
    assert requests == {
        f"GET /api/turns/{turn}/ HTTP/1.1": (str(turn), SPAN),
        "GET /healthz HTTP/1.1": (None, None),
    }
