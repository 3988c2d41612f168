"""Who may call Docent's tools by the Model Context Protocol, and what they reach."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import httpx2
import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from django.utils.timezone import now
from knox.models import AuthToken

from agents.models import Envelope
from agents.names import Status
from conversations.mcp_server import LARGEST_REQUEST, Service
from conversations.mcp_tools import AskArguments, Visitor, begin, cancel_asked
from conversations.models import Assistant, Conversation, Message
from conversations.services import Asker
from knowledge.collections import Reach
from knowledge.models import Document
from tests import factories
from tests.knowledge.levels import page, towards

pytestmark = pytest.mark.django_db(transaction=True)

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
Post = Callable[..., httpx2.Response]
Call = Callable[..., Any]


@pytest.fixture
def post(port: int) -> Iterator[Post]:
    """Post a message with these headers."""
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:

        def send(sent: dict[str, str], body: Any = LIST, method: str = "POST") -> httpx2.Response:
            content = body if isinstance(body, str) else json.dumps(body)
            return http.request(method, "/mcp", content=content, headers=ACCEPT | sent)

        yield send


@pytest.fixture
def call(post: Post) -> Call:
    """Call a tool with a key's headers; return whether it failed and what was said."""

    def send(headers: dict[str, str], name: str, **arguments: Any) -> tuple[bool, str]:
        params = {"name": name, "arguments": arguments}
        answer = post(
            headers, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
        )
        assert answer.status_code == HTTPStatus.OK
        result = message(answer)["result"]
        return result["isError"], result["content"][0]["text"]

    return send


def message(answer: httpx2.Response) -> Any:
    """The message of a stream that holds one."""
    (data,) = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return json.loads(data.removeprefix("data: "))


@pytest.fixture
def keys(clerk: User) -> dict[str, dict[str, str]]:
    """The headers of the clerk's keys, by what they are."""
    made = {name: factories.key(clerk) for name in ("good", "expired", "revoked")}
    made["documents"] = factories.key(clerk, scopes=["documents"])
    tokens = dict(zip(made, AuthToken.objects.order_by("created"), strict=True))
    tokens["expired"].expiry = now() - timedelta(seconds=1)
    tokens["expired"].save()
    tokens["revoked"].delete()
    return made


def test_nobody_gets_in_without_a_key_that_may(
    post: Post, port: int, keys: Any, clerk: User, client: Browser, settings: LazySettings
) -> None:
    settings.PUBLIC_URL = "https://docent.example"
    settings.CORS_ALLOWED_ORIGINS = ["https://shop.example"]
    client.force_login(clerk)
    good, session = keys["good"], client.cookies["sessionid"].value
    table: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"Cookie": f"sessionid={session}"}, 401),
        ({"Authorization": "Bearer nothing"}, 401),
        ({"Authorization": "Basic YTpi"}, 401),
        (keys["expired"], 401),
        (keys["revoked"], 401),
        (keys["documents"], 403),
        (good, 200),
        (good | {"Origin": "https://evil.example"}, 403),
        (good | {"Origin": "null"}, 403),
        (good | {"Origin": f"http://127.0.0.1:{port}"}, 200),
        (good | {"Origin": "https://docent.example"}, 200),
        (good | {"Origin": "https://shop.example"}, 200),
        (good | {"Origin": "https://shop.example.evil.example"}, 403),
        (good | {"Host": "evil.example"}, 400),
    ]
    for headers, status in table:
        answer = post(headers)
        assert answer.status_code == status, headers
        assert (answer.headers.get("WWW-Authenticate") == "Bearer") is (status == 401)


def test_an_answer_has_the_headers_that_all_have(
    post: Post, keys: Any, settings: LazySettings
) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://shop.example"]
    origin = {"Origin": "https://shop.example"}
    answer, refusal = post(keys["good"] | origin), post(origin)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    for name in ("X-Content-Type-Options", "Referrer-Policy", "Access-Control-Allow-Origin"):
        assert answer.headers[name] == refusal.headers[name]
    assert "Mcp-Session-Id" in answer.headers["Access-Control-Expose-Headers"]


def test_what_is_no_message_is_refused_before_anything_is_asked(post: Post, keys: Any) -> None:
    table: list[tuple[Any, dict[str, str], str, int]] = [
        (LIST, {"Accept": "text/event-stream"}, "GET", 405),
        (LIST, {}, "DELETE", 405),
        ("{", {}, "POST", 400),
        ("[" * 100_000, {}, "POST", 400),
        ([LIST, LIST], {}, "POST", 400),
        (LIST, {"MCP-Protocol-Version": "1999-01-01"}, "POST", 400),
        (LIST, {"Accept": "text/html"}, "POST", 406),
        ("a" * (LARGEST_REQUEST + 1), {}, "POST", 413),
    ]
    for body, headers, method, status in table:
        assert post(keys["good"] | headers, body, method).status_code == status, (headers, method)


def test_calls_are_counted_as_those_of_the_api(
    post: Post, keys: Any, settings: LazySettings
) -> None:
    settings.MAX_REQUESTS_PER_KEY = 1
    assert post(keys["good"]).status_code == HTTPStatus.OK
    of_the_key = post(keys["good"])
    settings.MAX_REQUESTS_PER_ADDRESS = 1
    post(keys["expired"])
    of_the_address = post(keys["expired"])
    for refused in (of_the_key, of_the_address):
        assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
        assert int(refused.headers["Retry-After"]) > 0


@pytest.mark.usefixtures("listening")
def test_a_key_of_some_collections_knows_and_reaches_no_other(
    post: Post, call: Call, clerk: User
) -> None:
    loans = page("loans", ("Loans end in March.", towards(1)), collection="loans")
    phones = page("phones", ("Phones end in March.", towards(1)), collection="phones")
    bound = factories.key(clerk, collections=["loans"])
    assert "phones" not in post(bound).text
    assert "loans" in post(bound).text
    for named in ("phones", "nothing"):
        unknown = (True, f"There is no collection {named!r} here.")
        assert call(bound, "search", query="end", collections=[named]) == unknown
        assert call(bound, "ask", question="end?", collections=[named]) == unknown
    is_error, text = call(bound, "search", query="end in March")
    assert (is_error, "Loans" in text, "Phones" in text) == (False, True, False)
    assert call(bound, "get_document", document_id=loans.pk)[0] is False
    assert call(bound, "get_document", document_id=phones.pk) == call(
        bound, "get_document", document_id="nothing"
    )
    assert not Conversation.objects.exists()


def test_a_key_of_an_assistant_reads_what_is_for_its_audience(call: Call, clerk: User) -> None:
    papers = {
        audience: page(audience, ("End.", towards(1)), collection="shop", audience=audience)
        for audience in ("", "customers", "staff")
    }
    shop = Assistant.objects.create(name="shop", collections=["shop"], audience="customers")
    bound, free = factories.key(clerk, assistant=shop), factories.key(clerk)

    def readable(headers: dict[str, str]) -> list[str]:
        return [
            audience
            for audience, document in papers.items()
            if not call(headers, "get_document", document_id=document.pk)[0]
        ]

    assert readable(bound) == ["", "customers"]
    assert readable(free) == ["", "customers", "staff"]
    bank = Assistant.objects.create(name="bank", collections=["bank"])
    assert readable(factories.key(clerk, assistant=bank)) == []
    assert Document.objects.count() == len(papers)


def test_a_client_cancels_what_it_asked_itself_and_nothing_of_others(clerk: User) -> None:
    turn = factories.turn(factories.conversation(owner=clerk), status=Status.RUNNING)
    Message.objects.filter(turn=turn).update(idempotency_key="mcp:a:7")
    other = User.objects.create_user("other")
    table = [(other, "mcp:a:7", True), (clerk, "mcp:a:8", True), (clerk, "mcp:a:7", False)]
    for user, key, runs in table:
        cancel_asked(Visitor(Asker(user), Reach()), key)
        assert Envelope.objects.filter(status=Status.RUNNING).exists() is runs


@pytest.mark.usefixtures("listening")
def test_a_question_that_was_cancelled_before_it_arrived_is_not_answered(clerk: User) -> None:
    visitor, other = Visitor(Asker(clerk), Reach()), Visitor(Asker(None), Reach())
    cancel_asked(visitor, "mcp:a:7")
    begun = [
        begin(who, AskArguments(question="How long?"), key)
        for who, key in ((visitor, "mcp:a:7"), (visitor, "mcp:a:8"), (other, "mcp:a:7"))
    ]
    statuses = [Envelope.objects.get(pk=each.pk).status for each in begun]
    assert statuses == [Status.CANCELLED, Status.RUNNING, Status.RUNNING]


def test_the_command_serves_who_may_and_no_others(clerk: User, keys: Any) -> None:
    factories.collection("loans")
    with pytest.raises(CommandError, match="There is no collection 'no'"):
        call_command("mcp", collection=["no"])
    for headers, said in ((keys["expired"], "has expired"), (keys["documents"], "scope chat")):
        with pytest.raises(CommandError, match=said):
            call_command("mcp", key=headers["Authorization"].removeprefix("Bearer "))
    bound = factories.key(clerk, collections=["phones"])["Authorization"].removeprefix("Bearer ")
    with pytest.raises(CommandError, match="There is no collection 'loans' here"):
        call_command("mcp", key=bound, collection=["loans"])


@pytest.mark.parametrize(
    ("session", "request_id", "key"),
    [
        ("a", 7, "mcp:a:7"),
        ("a", "x" * 64, "mcp:a:" + "x" * 64),
        ("", 7, ""),
        ("a", None, ""),
        ("a", "x" * 65, ""),
        ("a", "ä", ""),
        ("a", "\n", ""),
    ],
)
def test_a_request_is_known_by_its_session_and_its_id(
    session: str, request_id: Any, key: str
) -> None:
    assert Service(Visitor(Asker(None), Reach()), session).request_key(request_id) == key
