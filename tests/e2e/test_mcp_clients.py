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


@asynccontextmanager
async def over_http(docent: Docent) -> AsyncIterator[Any]:
    """The transport of an editor that is given an address."""
    address, sent = f"http://127.0.0.1:{docent.port}/mcp", {"Authorization": f"Bearer {docent.key}"}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=60) as http,
        streamable_http_client(address, http_client=http) as streams,
    ):
        yield streams


def over_streams(docent: Docent) -> Any:
    """The transport of an editor that is given a command."""
    words = ["manage.py", "mcp", "--key", docent.key, "--collection", "teapot"]
    command = StdioServerParameters(
        command=sys.executable, args=words, cwd=str(CHECKOUT), env=docent.environment
    )
    return stdio_client(command)


async def used(transport: Any) -> dict[str, Any]:
    """Ask, read what the answer cites, be asked back, and reply."""
    steps: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with Client(transport, mode="legacy") as client:
        descale = {"question": "How do I descale the heater?", "collections": ["teapot"]}
        answered = await client.call_tool("ask", descale, progress_callback=note)
        (cited, *_) = answered.structured_content["citations"]
        read = await client.call_tool("get_document", {"document_id": cited["document_id"]})
        vague = {"question": "How do I set it up?", "collections": ["teapot"]}
        asked_back = await client.call_tool("ask", vague)
        session = asked_back.structured_content["conversation"]
        reply = {"question": "The Teapot", "conversation": session}
        settled = await client.call_tool("ask", reply)
    return {
        "answer": answered.structured_content,
        "steps": steps,
        "text": read.structured_content["text"],
        "back": asked_back.structured_content,
        "settled": settled.structured_content,
    }


@pytest.mark.parametrize("way", [over_http, over_streams])
def test_an_editor_asks_reads_and_replies(docent: Docent, way: Any) -> None:
    seen = anyio.run(used, way(docent))
    assert "citric acid" in seen["answer"]["answer"]
    assert "citric acid" in seen["text"]
    assert {"lang", "search", "response"} <= set(seen["steps"])
    assert seen["back"]["status"] == "awaiting_user"
    assert seen["back"]["options"]
    assert seen["settled"]["conversation"] == seen["back"]["conversation"]
    turn = docent.call("GET", f"/api/turns/{seen['answer']['turn_id']}/")
    assert turn.body["reply"] == seen["answer"]["answer"]
