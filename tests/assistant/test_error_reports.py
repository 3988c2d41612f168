"""Error reports: what Sentry is told, and what it is not."""

import gzip
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from django.conf import settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from agents.contract import REGISTRY
from agents.errors import AgentError
from agents.manager import route
from agents.models import Fault
from agents.names import Role
from agents.steps.steps import perform_in_batches, perform_one_by_one, run_agent
from assistant import error_reports
from tests.conftest import MEMORY, Begin

# What somebody wrote. Reports show the lines of the program around an error.
LETTER = "my letter"


class Sentry:
    """A server that keeps the events it is sent."""

    def __init__(self, server: HTTPServer) -> None:
        self.bodies: list[bytes] = []
        server.expect_request("/api/7/envelope/").respond_with_handler(self.take)

    def take(self, request: Request) -> Response:
        body = request.get_data()
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.bodies.append(body)
        return Response("{}", status=200)

    def events(self) -> list[dict[str, Any]]:
        """What was sent, once all of it is there: an envelope's items stand on a line each."""
        sentry_sdk.flush(10)
        lines = [json.loads(line) for body in self.bodies for line in body.splitlines() if line]
        return [line for line in lines if "level" in line]


@pytest.fixture
def sentry(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sentry]:
    monkeypatch.setattr(settings, "SENTRY_DSN", f"http://key@localhost:{httpserver.port}/7")
    server = Sentry(httpserver)
    error_reports.start()
    yield server
    sentry_sdk.get_client().close(timeout=10)
    sentry_sdk.init()


def test_a_fault_is_found_by_its_id_and_says_nothing_of_what_was_asked(
    sentry: Sentry, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = begin()

    def fail(payload: dict[str, Any], _: object) -> None:
        asked = payload["text"]
        raise AgentError(f"I cannot understand {asked}")

    perform_in_batches(Role.MANAGER, route)
    monkeypatch.setattr(REGISTRY[Role.LANG], "perform", fail)
    envelope.steps.filter(role=Role.LANG).update(attempt=2)
    perform_one_by_one(Role.LANG, run_agent)
    (event,) = sentry.events()
    code = Fault.objects.get().code
    assert (
        event["tags"].items()
        >= {
            "error_id": code,
            "turn": str(envelope.pk),
            "conversation": str(envelope.conversation_id),
            "role": "lang",
            "step": "2",
        }.items()
    )
    (error,) = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("AgentError", f"{code}, see Faults in the admin")
    functions = [frame["function"] for frame in error["stacktrace"]["frames"]]
    assert functions[-1] == "fail"
    assert not any(MEMORY["text"].encode() in body for body in sentry.bodies)


def test_of_other_errors_neither_values_nor_messages_are_told(sentry: Sentry) -> None:
    log = logging.getLogger("docent.test")
    log.warning("nothing of an error")
    log.error("could not read %s", LETTER, extra={"letter": LETTER})
    try:
        int(LETTER)
    except ValueError:
        log.exception("could not count")
    read, count = sentry.events()
    assert read["logentry"]["message"] == "could not read %s"
    assert count["exception"]["values"][0]["type"] == "ValueError"
    assert not any(LETTER.encode() in body for body in sentry.bodies)
