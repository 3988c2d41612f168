"""Dialects: what a server refuses is said otherwise, and remembered."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from agents.llm import client, dialects
from agents.llm.outcomes import ModelFailure
from knowledge.providers import Provider
from tests.agents.llm.probe import GOOD, request, shaped_request
from tests.scripted import Call, Response, Scripted, scripted


@pytest.fixture
def models() -> Iterator[Scripted]:
    """The server alone: nothing is stored here."""
    with scripted() as server:
        yield server


def error(message: str, status: int = 400, **more: Any) -> Response:
    return Response(status=status, body=json.dumps({"error": {"message": message, **more}}))


UNSUPPORTED = "Unsupported parameter: '{0}' is not supported with this model."


class Choosy:
    """A server that refuses some parts of a request, each by its name."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused

    def __call__(self, call: Call) -> Response:
        for name in self.refused:
            if name in call.body or name == call.body.get("response_format", {}).get("type"):
                return error(UNSUPPORTED.format(name), param=name)
        return Response('{"good": true}')


@pytest.mark.parametrize(
    ("refused", "instead"),
    [
        (["stream_options"], {"stream": True}),
        (["stream"], {"temperature": 0.0}),
        (["temperature"], {"max_tokens": 100}),
        (["max_tokens"], {"max_completion_tokens": 100}),
        (["json_schema"], {"response_format": {"type": "json_object"}}),
        (["response_format"], {"max_tokens": 100}),
        (["stream_options", "max_tokens", "temperature", "json_schema"], {"stream": True}),
    ],
)
def test_what_a_server_refuses_is_said_otherwise_and_only_the_first_call_pays(
    models: Scripted, refused: list[str], instead: dict[str, Any]
) -> None:
    models.says("probe", Choosy(*refused))
    reply = client.send(shaped_request(), seconds=5.0)
    assert reply.text == '{"good": true}'
    first = len(models.server.ledger)
    assert first > 1
    client.send(shaped_request(), seconds=5.0)
    assert len(models.server.ledger) == first + 1
    assert instead.items() <= models.server.ledger[-1].body.items()


@pytest.mark.parametrize(
    "complaint", ["'maxLength' is not permitted", "cannot compile json schema"]
)
def test_a_server_that_takes_no_bounds_keeps_its_schema_without_them(
    models: Scripted, complaint: str
) -> None:
    def refusing(call: Call) -> Response:
        bounded = "maxLength" in json.dumps(call.body["response_format"])
        return error(f"Invalid schema for response_format: {complaint}") if bounded else GOOD

    models.says("probe", refusing)
    schema = {"type": "object", "properties": {"why": {"type": "string", "maxLength": 40}}}
    asked = request(schema_name="Verdict", schema=schema)
    for _ in range(2):
        client.send(asked, seconds=5.0)
    formats = [call.body["response_format"] for call in models.server.ledger]
    assert ["maxLength" in json.dumps(each) for each in formats] == [True, False, False]
    assert {each["type"] for each in formats} == {"json_schema"}


def test_openai_is_never_sent_what_its_strict_mode_refuses() -> None:
    server = Provider("openai", "https://api.openai.com/v1")
    schema = {"type": "object", "properties": {"why": {"type": "string", "maxLength": 40}}}
    asked = request(schema_name="Verdict", schema=schema)
    sent = dialects.dialect_of(server, "gpt-4o").parameters("gpt-4o", asked)
    assert "maxLength" not in json.dumps(sent)


def test_the_shape_stands_in_the_prompt_when_the_server_takes_no_schema(models: Scripted) -> None:
    models.says("probe", Choosy("json_schema"))
    client.send(shaped_request(), seconds=5.0)
    first, second = models.server.ledger
    assert '"required"' not in first.system
    assert '"required": ["good"]' in second.system
    assert second.user == "Hello?"


def test_what_did_not_help_is_not_remembered(models: Scripted) -> None:
    models.says("probe", error("Invalid 'temperature' or something"))
    with pytest.raises(ModelFailure):
        client.send(request(), seconds=5.0)
    server = settings.PROVIDERS["scripted"]
    assert dialects.dialect_of(server, "fake") == dialects.Dialect()


def test_a_number_that_is_too_large_does_not_change_how_it_is_called(models: Scripted) -> None:
    models.says("probe", error("max_tokens is too large: 100. This model supports at most 64"))
    with pytest.raises(ModelFailure, match="at most 64"):
        client.send(request(), seconds=5.0)
    assert len(models.server.ledger) == 1


def test_a_model_without_a_system_role_gets_it_all_from_the_user(models: Scripted) -> None:
    def refusing(call: Call) -> Response:
        if call.body["messages"][0]["role"] == "system":
            return error("System role not supported")
        return Response("yes")

    models.says("probe", refusing)
    client.send(request(), seconds=5.0)
    (message,) = models.server.ledger[-1].body["messages"]
    assert message == {"role": "user", "content": "# probe\n\nHello?"}


def test_one_model_learns_nothing_about_another(models: Scripted) -> None:
    models.says("probe", Choosy("temperature"))
    client.send(request(), seconds=5.0)
    models.says("probe", Response("yes"))
    client.send(replace(request(), model="other@scripted"), seconds=5.0)
    assert "temperature" in models.server.ledger[-1].body
