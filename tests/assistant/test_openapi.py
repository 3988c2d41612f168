"""The schema: every operation has a name, examples that hold, and all that can come of it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from jsonschema import Draft202012Validator

from assistant.openapi_examples import EVENTS, JSON

NAME = re.compile(r"[a-z]+(_[a-z]+)*")


@pytest.fixture(scope="module")
def schema() -> Any:
    """As the API itself shows it."""
    return Client().get("/api/schema/", {"format": "json"}).json()


def operations(schema: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in schema["paths"].items():
        yield from ((f"{method.upper()} {path}", said) for method, said in methods.items())


def contents(said: Any) -> Iterator[tuple[str, str, Any]]:
    """Status (of a body none), media type and content."""
    for status, part in ({"": said.get("requestBody", {})} | said["responses"]).items():
        for media_type, content in part.get("content", {}).items():
            yield status, media_type, content


def shown(content: Any) -> list[Any]:
    """The examples of a content."""
    own = [content["example"]] if "example" in content else []
    return [*own, *(each["value"] for each in content.get("examples", {}).values())]


def test_the_schema_describes_every_endpoint_without_a_warning() -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")


def test_every_operation_tells_its_refusals(schema: Any) -> None:
    for name, said in operations(schema):
        sent = {(each["in"], each["name"]) for each in said.get("parameters", ())}
        wanted = {"401", "403", "429", "500", "503"}
        wanted |= {"400"} if "requestBody" in said or any(at != "path" for at, _ in sent) else set()
        wanted |= {"404"} if "{" in name or ("query", "page") in sent else set()
        wanted |= {"406"} if "/api/" in name else set()
        wanted |= {"413", "415"} if "requestBody" in said else set()
        wanted |= {"409", "422"} if ("header", "Idempotency-Key") in sent else set()
        assert wanted <= {*said["responses"]}, name
        assert any(status < "3" for status in said["responses"]), name
        for status in ("429", "503"):
            assert "Retry-After" in said["responses"][status]["headers"], name


def test_every_body_and_every_answer_has_an_example_that_holds(schema: Any) -> None:
    for name, said in operations(schema):
        for status, media_type, content in contents(said):
            where = f"{name} {status} {media_type}"
            if media_type == "multipart/form-data":
                continue
            assert shown(content), where
            whole = {"components": schema["components"], **content["schema"]}
            for each in shown(content):
                problems = [
                    error.message for error in Draft202012Validator(whole).iter_errors(each)
                ]
                assert problems == [], where


def test_refusals_below_v1_have_the_shape_of_openai(schema: Any) -> None:
    for name, said in operations(schema):
        of_openai = " /v1/" in name
        for status, _, content in contents(said):
            if status >= "4":
                assert all(("error" in each) is of_openai for each in shown(content)), name


def test_every_operation_has_a_name_for_a_method_and_one_subject(schema: Any) -> None:
    names = [said["operationId"] for _, said in operations(schema)]
    assert len({*names}) == len(names)
    for name, said in operations(schema):
        assert NAME.fullmatch(said["operationId"]), name
        assert len(said["tags"]) == 1, name
        assert said["description"], name
        assert all("description" in each for each in said["responses"].values()), name
    assert {"ask", "list_documents", "read_turn", "cancel_turn", "delete_document"} <= {*names}


def test_every_operation_takes_a_key(schema: Any) -> None:
    key = schema["components"]["securitySchemes"]["key"]
    assert (key["type"], key["scheme"]) == ("http", "bearer")
    assert all({"key": []} in said["security"] for _, said in operations(schema))


def test_what_deletes_says_what_it_returns(schema: Any) -> None:
    deleting = [(name, said) for name, said in operations(schema) if name.startswith("DELETE")]
    assert deleting
    for name, said in deleting:
        (success,) = (answer for status, answer in said["responses"].items() if status < "3")
        assert success["content"][JSON]["schema"]["$ref"], name


def test_streams_and_uploads_say_what_they_are(schema: Any) -> None:
    streams = {
        name: content
        for name, said in operations(schema)
        for _, media_type, content in contents(said)
        if media_type == EVENTS
    }
    assert {"GET /api/turns/{turn_id}/events/", "POST /v1/chat/completions"} <= streams.keys()
    for name, content in streams.items():
        assert all("data: " in each and each.endswith("\n\n") for each in shown(content)), name
    upload = schema["components"]["schemas"]["UploadRequest"]["properties"]["file"]
    assert upload["items"] == {"type": "string", "format": "binary"}


def lists(said: Any, schema: Any) -> Iterator[Any]:
    """The schemas of all lists that are within one, those that it refers to included."""
    if "$ref" in said:
        said = schema["components"]["schemas"][said["$ref"].rpartition("/")[2]]
    if said.get("type") == "array":
        yield said
        yield from lists(said["items"], schema)
    for inner in (*said.get("properties", {}).values(), *said.get("oneOf", ())):
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
