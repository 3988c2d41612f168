"""A user who asked by every way there is, of models, is forgotten by a running Docent."""

import anyio
import httpx2
import psycopg
import pytest
import redis
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.conftest import Docent
from tests.residue import places
from tests.sensible import Sensible

WORD, USER = "xylophone8", "zebra8"
QUESTION = f"How do I descale the heater of my {WORD}?"


@pytest.fixture(autouse=True)
def usual(server: Sensible) -> None:
    """Sensible replies, which repeat what was asked."""
    server.reset()
    server.says("clarification", {"message": f"What about your {WORD}?"})


def found(docent: Docent) -> set[str]:
    """Where the user's words or name stand."""
    store = redis.Redis.from_url(docent.environment["REDIS_URL"], decode_responses=True)
    with psycopg.connect(docent.environment["DATABASE_URL"]) as connection, store:
        cursor = connection.cursor()
        return places(cursor, store, WORD) | places(cursor, store, USER)


async def asked_over_mcp(docent: Docent) -> str:
    """Ask; return the conversation."""
    address, sent = f"http://127.0.0.1:{docent.port}/mcp", {"Authorization": f"Bearer {docent.key}"}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http), mode="legacy") as client,
    ):
        asked = {"question": QUESTION, "collections": ["teapot"]}
        answer = await client.call_tool("ask", asked)
        turn = docent.call("GET", f"/api/turns/{answer.structured_content['turn_id']}/trace/")
        return str(turn.body["conversation_id"])


def test_a_user_who_asked_by_every_way_leaves_no_word(thinker: Docent) -> None:
    assert found(thinker) == set()
    thinker.ask(QUESTION, user_id=USER, session_id=f"s-{USER}")
    thinker.ask(f"And the {WORD} itself?", user_id=USER, session_id=f"s-{USER}")
    thinker.ask(f"/{WORD}", user_id=USER)
    said = {"model": "teapot", "user": USER, "messages": [{"role": "user", "content": QUESTION}]}
    assert thinker.call("POST", "/v1/chat/completions", said).status == 200
    talk = anyio.run(asked_over_mcp, thinker)
    assert {"agents_modelcall", "agents_step", "agents_envelope"} <= found(thinker)

    receipt = thinker.call("DELETE", f"/api/users/{USER}/").body
    assert receipt["removed"]["conversations"] == 3
    assert receipt["removed"]["model_calls"] > 0
    assert thinker.call("DELETE", f"/api/conversations/{talk}/").status == 200

    assert found(thinker) == set()
