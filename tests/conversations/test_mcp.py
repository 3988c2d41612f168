"""Editors and agents of others call Docent's tools by the Model Context Protocol, over HTTP."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from anyio import to_thread
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils.timezone import now
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from agents.models import Envelope, Fault
from agents.names import Status
from conversations import mcp_server
from conversations.errors import ServerAway
from conversations.models import Conversation
from knowledge.models import Document, Version
from tests import factories
from tests.knowledge.levels import page, towards

pytestmark = pytest.mark.django_db(transaction=True)

MODES: Any = ["legacy", "auto"]
Do = Callable[[Client], Awaitable[Any]]
Talk = Callable[..., Any]


@pytest.fixture
def talk(port: int, clerk: User) -> Talk:
    """Have something done by a client with a key of the clerk's, which is granted what is said."""

    def run(do: Do, *, mode: Any = "auto", headers: Any = None, **grant: Any) -> Any:
        sent = headers or factories.key(clerk, **grant)

        async def main() -> Any:
            async with connected(port, sent, mode) as client:
                try:
                    return await do(client)
                except MCPError as error:
                    return error

        return anyio.run(main)

    return run


@asynccontextmanager
async def connected(port: int, headers: dict[str, str], mode: Any) -> AsyncIterator[Client]:
    """A client of that protocol's era."""
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport, mode=mode, cache=None) as client:
            yield client


def calling(name: str, **arguments: Any) -> Do:
    """Call one tool."""
    return lambda client: client.call_tool(name, arguments)


def text(result: Any) -> str:
    """What a model reads."""
    (block,) = result.content
    return str(block.text)


@pytest.mark.parametrize("mode", MODES)
def test_tools_have_schemas_and_say_what_they_change(talk: Talk, mode: Any) -> None:
    async def look(client: Client) -> tuple[Any, str, str]:
        assert client.server_info
        assert client.instructions
        return await client.list_tools(), client.server_info.name, client.instructions

    listed, name, instructions = talk(look, mode=mode)
    assert (name, "search" in instructions) == ("docent", True)
    tools = {tool.name: tool for tool in listed.tools}
    assert set(tools) == {"search", "ask", "get_document"}
    for tool in tools.values():
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.read_only_hint is (tool.name != "ask")
        assert tool.annotations.destructive_hint is False
    assert tools["search"].input_schema["required"] == ["query"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("working")
def test_a_question_is_an_ordinary_turn_whose_steps_are_told(talk: Talk, mode: Any) -> None:
    steps: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(steps) + 1, None)
        steps.append(str(message))

    async def ask(client: Client) -> tuple[Any, Any]:
        first = await client.call_tool("ask", {"question": "/help"}, progress_callback=note)
        session = first.structured_content["conversation"]
        more = {"question": "/help", "conversation": session}
        return first, await client.call_tool("ask", more)

    first, second = talk(ask, mode=mode)
    turn = Envelope.objects.order_by("create_ts")[0]
    answer = first.structured_content
    assert (answer["turn_id"], answer["status"]) == (str(turn.pk), "completed")
    assert turn.payload["response"] in text(first)
    assert steps == ["command"]
    assert (first.is_error, second.is_error) == (False, False)
    assert Conversation.objects.get().messages.count() == 4


@pytest.mark.usefixtures("working")
def test_a_question_that_is_asked_back_is_a_reply_with_options(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = {"response": "Which one?\n- The large\n- The small", "suggested_actions": ["The large"]}

    def ended(envelope: Envelope) -> Envelope:
        envelope.status, envelope.payload = Status.AWAITING_USER, back
        return envelope

    monkeypatch.setattr("conversations.mcp_server.current", ended)
    result = talk(calling("ask", question="/help"))
    assert not result.is_error
    assert "The small" in text(result)
    assert result.structured_content["status"] == "awaiting_user"
    assert result.structured_content["options"] == ["The large"]


def test_a_search_brings_passages_whose_document_can_be_read(talk: Talk) -> None:
    page("a", ("Unused days end in March.", towards(1)))
    result = talk(calling("search", query="unused days", limit=1))
    (passage,) = result.structured_content["passages"]
    assert passage["text"] == "Unused days end in March."
    assert passage["text"] in text(result)
    read = talk(calling("get_document", document_id=passage["document_id"]))
    assert read.structured_content["title"] == passage["title"]


def test_nothing_found_is_said(talk: Talk) -> None:
    factories.collection(documents=0)
    result = talk(calling("search", query="unused days"))
    assert (text(result), result.structured_content["can_answer"]) == ("Nothing was found.", False)


def test_a_long_document_is_read_in_parts_and_in_the_version_that_was_cited(talk: Talk) -> None:
    factories.collection(content="0123456789")
    document = Document.objects.get()
    document.version = 2
    document.save()
    Version.objects.create(document=document, number=1, content="before", created=now())

    async def read(client: Client) -> str:
        parts, offset = "", 0
        while offset is not None:
            asked = {"document_id": document.pk, "offset": offset, "limit": 4}
            part = (await client.call_tool("get_document", asked)).structured_content
            parts, offset = parts + part["text"], part["next_offset"]
        return parts

    assert talk(read) == "0123456789"
    before = talk(calling("get_document", document_id=document.pk, version=1))
    assert before.structured_content["text"] == "before"
    gone = talk(calling("get_document", document_id=document.pk, version=7))
    assert (gone.is_error, text(gone)) == (True, "Version 7 of it is not kept.")
    behind = talk(calling("get_document", document_id=document.pk, offset=10)).structured_content
    assert (behind["text"], behind["characters"], behind["next_offset"]) == ("", 10, None)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("search", {}, "query: Field required."),
    ("search", {"query": ""}, "The message is empty: write a question."),
    ("search", {"query": "a", "limit": 51}, "limit: Input should be less than or equal to 50."),
    ("search", {"query": "a", "language": "?"}, "language: String should match pattern"),
    ("search", {"query": "a", "colour": 1}, "colour: Extra inputs are not permitted."),
    ("search", {"query": "a", "collections": ["no"]}, "There is no collection 'no' here."),
    ("search", {"query": "a", "collections": ["a"] * 51}, "collections: List should have"),
    ("search", {"query": "a" * 9000}, "The message has 9,000 characters; at most 8,000"),
    ("ask", {"question": "\x00"}, "The message holds a null character"),
    ("ask", {"question": "a", "conversation": "a b"}, "conversation: String should match"),
    ("ask", {"question": "a", "assistant": "no"}, "There is no assistant of that name here."),
    ("ask", {"question": "a", "collections": ["no"]}, "There is no collection 'no' here."),
    ("ask", {"question": "a"}, "The assistant is not at work right now."),
    ("get_document", {"document_id": "no"}, "There is no such document here."),
    ("get_document", {"document_id": "a", "offset": -1}, "offset: Input should be greater"),
]


def test_a_wrong_call_is_a_result_that_says_what_is_wrong(talk: Talk) -> None:
    async def call(client: Client) -> list[Any]:
        return [await client.call_tool(name, arguments) for name, arguments, _ in WRONG]

    results = talk(call)
    assert all(result.is_error for result in results)
    for result, (_, _, said) in zip(results, WRONG, strict=True):
        assert text(result).startswith(said)
    assert not Conversation.objects.exists()


def test_what_nobody_expected_is_an_error_with_an_id_and_nothing_of_ours(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("secret inside")

    monkeypatch.setitem(mcp_server.RUN, "search", broken)
    for mode in MODES:
        error = talk(calling("search", query="a"), mode=mode).error
        fault = Fault.objects.latest("created")
        assert error.message == f"Something went wrong. Tell the operator: {fault.code}"
        assert "secret inside" in fault.summary


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_is_away_is_told_as_such(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("connection to 10.0.0.7 failed")

    monkeypatch.setitem(mcp_server.RUN, "search", away)
    result = talk(calling("search", query="a"), mode=mode)
    assert (result.is_error, text(result)) == (True, str(ServerAway()))


def test_there_is_no_other_tool(talk: Talk) -> None:
    error = talk(calling("delete")).error
    assert error.message == "There is no tool of that name, only: search, ask, get_document."


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("mode", MODES)
def test_a_question_that_its_client_cancels_ends_its_turn(talk: Talk, mode: Any) -> None:
    async def leave(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "ask", {"question": "How long?"})
            while not await to_thread.run_sync(Envelope.objects.exists):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        while await to_thread.run_sync(is_running):
            await anyio.sleep(0.01)

    def is_running() -> bool:
        return Envelope.objects.filter(status=Status.RUNNING).exists()

    talk(leave, mode=mode)
    assert Envelope.objects.get().status == Status.CANCELLED
