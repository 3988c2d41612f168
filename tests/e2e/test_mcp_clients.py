"""An editor uses a running Docent by the Model Context Protocol, over HTTP and standard streams."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio._core._subprocesses  # else pytest would rewrite it within a running loop
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.conftest import CHECKOUT, Docent


@pytest.fixture(scope="module")
def key(docent: Docent) -> str:
    """A key that reaches one collection."""
    created = docent.manage("apikey", "create", "editor", "--collection", "teapot")
    return created.stdout.strip()


@asynccontextmanager
async def over_http(docent: Docent, key: str) -> AsyncIterator[Any]:
    """The transport of an editor that is given an address."""
    address, sent = f"http://127.0.0.1:{docent.port}/mcp", {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=60) as http,
        streamable_http_client(address, http_client=http) as streams,
    ):
        yield streams


def over_streams(docent: Docent, key: str) -> Any:
    """The transport of an editor that is given a command."""
    words = ["manage.py", "mcp", "--key", key]
    command = StdioServerParameters(
        command=sys.executable, args=words, cwd=str(CHECKOUT), env=docent.environment
    )
    return stdio_client(command)


async def used(transport: Any) -> dict[str, Any]:
    """Search, ask, be asked back, reply, and read what an answer cites."""
    steps: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with Client(transport, mode="legacy") as client:
        found = await client.call_tool("search", {"query": "descale the heater"})
        answered = await client.call_tool(
            "ask", {"question": "How do I descale the heater?"}, progress_callback=note
        )
        (cited, *_) = answered.structured_content["citations"]
        read = await client.call_tool("get_document", {"document_id": cited["document_id"]})
        asked_back = await client.call_tool("ask", {"question": "How do I set it up?"})
        session = asked_back.structured_content["conversation"]
        reply = {"question": "The Teapot", "conversation": session}
        settled = await client.call_tool("ask", reply)
    return {
        "passages": found.structured_content["passages"],
        "answer": answered.structured_content,
        "steps": steps,
        "text": read.structured_content["text"],
        "back": asked_back.structured_content,
        "settled": settled.structured_content,
    }


@pytest.mark.parametrize("way", [over_http, over_streams])
def test_an_editor_searches_asks_replies_and_reads(docent: Docent, key: str, way: Any) -> None:
    seen = anyio.run(used, way(docent, key))
    assert "citric acid" in seen["passages"][0]["text"]
    assert "citric acid" in seen["answer"]["answer"]
    assert "citric acid" in seen["text"]
    assert {"lang", "search", "response"} <= set(seen["steps"])
    assert seen["back"]["status"] == "awaiting_user"
    assert seen["back"]["options"]
    assert seen["settled"]["conversation"] == seen["back"]["conversation"]
    turn = docent.call("GET", f"/api/turns/{seen['answer']['turn_id']}/", key=key)
    assert turn.body["reply"] == seen["answer"]["answer"]


def test_a_key_that_is_none_is_refused_before_anything_is_served(docent: Docent) -> None:
    refused = docent.manage("mcp", "--key", "nothing")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "not known here" in refused.stderr
