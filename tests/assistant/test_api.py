"""Errors of the API: one shape, nothing of ours in it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from agents.models import Fault
from conversations import api


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(User.objects.create(username="ann", is_staff=True))
    return client


def test_a_bug_gives_the_user_a_sentence_and_the_operator_the_rest(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(api, "owned_turn", bug)
    answer = staff.get("/api/turns/00000000-0000-4000-8000-000000000000/")
    body = answer.json()
    fault = Fault.objects.get()
    assert answer.status_code == 500
    assert body["error_id"] == fault.code
    assert fault.code in body["detail"]
    assert "secret detail" not in answer.content.decode()
    assert "secret detail" in fault.details


def test_what_does_not_exist_is_not_found(staff: Client) -> None:
    answer = staff.get("/api/turns/00000000-0000-4000-8000-000000000000/")
    assert answer.status_code == 404
    assert set(answer.json()) == {"code", "detail"}


def test_a_wrong_method_is_refused(staff: Client) -> None:
    answer = staff.get("/api/chat/")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


@pytest.mark.django_db
def test_the_schema_describes_every_endpoint_without_a_warning() -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")


@pytest.mark.django_db
def test_the_migrations_are_complete() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.fixture
def schema(client: Client, db: None) -> Any:
    return client.get("/api/schema/", {"format": "json"}).json()


def operations(schema: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in schema["paths"].items():
        yield from ((f"{method.upper()} {path}", said) for method, said in methods.items())


def test_every_operation_tells_its_refusals_with_an_example(schema: Any) -> None:
    for name, said in operations(schema):
        missing = {"401", "403", "429", "503"} - {*said["responses"]}
        assert not missing, name
        assert ("404" in said["responses"]) >= ("{" in name), name
        for status, refusal in said["responses"].items():
            if status >= "4" and "content" in refusal:
                assert refusal["content"]["application/json"]["examples"], (name, status)
        assert "Retry-After" in said["responses"]["429"]["headers"], name
    deleted = schema["paths"]["/api/documents/{id}/"]["delete"]["responses"]
    assert "200" in deleted


def lists(said: Any, schema: Any) -> Iterator[Any]:
    """The schemas of all lists that are within one, those that it refers to included."""
    if "$ref" in said:
        said = schema["components"]["schemas"][said["$ref"].rpartition("/")[2]]
    if said.get("type") == "array":
        yield said
        yield from lists(said["items"], schema)
    for inner in said.get("properties", {}).values():
        yield from lists(inner, schema)


def test_every_list_of_a_body_or_a_query_is_bounded(schema: Any) -> None:
    found = 0
    for name, said in operations(schema):
        bodies = said.get("requestBody", {}).get("content", {}).values()
        parts = [each["schema"] for each in (*bodies, *said.get("parameters", ()))]
        for each in (each for part in parts for each in lists(part, schema)):
            # A long conversation that its client keeps comes whole.
            most = 1000 if name == "POST /v1/chat/completions" else 100
            assert each.get("maxItems", most + 1) <= most, name
            found += 1
    assert found >= 4
