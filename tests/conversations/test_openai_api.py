"""Clients of OpenAI's API are answered as by OpenAI: models, completions, streams and errors."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import openai
import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from agents import envelopes
from agents.models import Envelope
from agents.names import Status
from conversations import stream
from conversations.models import Assistant, Conversation, Message
from conversations.openai_models import EVERYTHING
from conversations.openai_reply import Asked, completion
from tests import factories
from tests.conversations.conftest import OpenAIFor

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION: Any = [{"role": "user", "content": "/help"}]
# As LibreChat and Open WebUI send them with every message.
USUAL: Any = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "user": "visitor-7",
    "n": 1,
    "max_tokens": 400,
    "seed": 7,
    "stop": ["Human:"],
    "tool_choice": "none",
    "response_format": {"type": "text"},
}


@pytest.fixture
def ask(openai_for: OpenAIFor, clerk: User) -> openai.OpenAI:
    """A client with the clerk's key."""
    return openai_for(clerk)


Post = Callable[..., Any]


@pytest.fixture
def post(client: Client, clerk: User) -> Post:
    """Post a question below /v1, some of it replaced."""
    sent = factories.key(clerk)

    def send(path: str = "chat/completions", data: Any = None, **more: Any) -> Any:
        body = {"model": EVERYTHING, "messages": QUESTION} | more if data is None else data
        return client.post(f"/v1/{path}", body, "application/json", headers=sent)

    return send


def test_assistants_and_collections_are_models(openai_for: OpenAIFor, ask: openai.OpenAI) -> None:
    for name in ("phones", "loans"):
        factories.collection(name)
    bank = Assistant.objects.create(name="bank", title="The Bank", collections=["loans"])
    Assistant.objects.create(name="phones", collections=["phones"])
    assert [each.id for each in ask.models.list()] == [EVERYTHING, "bank", "phones", "loans"]
    assert ask.models.retrieve(EVERYTHING).id == EVERYTHING
    bound = openai_for(User.objects.create_user("shop"), bank)
    assert [(each.id, each.owned_by) for each in bound.models.list()] == [("bank", "docent")]
    for name in ("phones", "loans", EVERYTHING, "nobody"):
        with pytest.raises(openai.NotFoundError) as caught:
            bound.models.retrieve(name)
        assert caught.value.body == {
            "message": f"There is no model {name!r} here.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("name", ["phones", "nobody", "", "phones'--", EVERYTHING])
def test_a_bound_key_asks_no_other_model(openai_for: OpenAIFor, clerk: User, name: str) -> None:
    for each in ("phones", "loans"):
        factories.collection(each)
    bank = Assistant.objects.create(name="bank", collections=["loans"])
    with pytest.raises(openai.NotFoundError) as caught:
        openai_for(clerk, bank).chat.completions.create(model=name, messages=QUESTION)
    assert "bank" not in caught.value.message
    assert not Conversation.objects.exists()


@pytest.mark.usefixtures("listening")
def test_a_key_of_some_collections_knows_and_reaches_no_other(
    openai_for: OpenAIFor, clerk: User
) -> None:
    for each in ("phones", "loans"):
        factories.collection(each)
    client = openai_for(clerk, collections=["loans"])
    assert [each.id for each in client.models.list()] == [EVERYTHING, "loans"]
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="phones", messages=QUESTION)
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="phones", input="A phone")
    with client.chat.completions.create(model=EVERYTHING, messages=QUESTION, stream=True):
        assert Envelope.objects.get().memory["collections"] == ["loans"]


@pytest.mark.usefixtures("working")
def test_a_question_is_answered_whole(ask: openai.OpenAI, clerk: User) -> None:
    answer = ask.chat.completions.create(
        model=EVERYTHING, messages=QUESTION, metadata={"desk": "7"}, **USUAL
    )
    turn = Envelope.objects.get()
    assert answer.id == f"chatcmpl-{turn.pk.hex}"
    assert (answer.object, answer.model) == ("chat.completion", EVERYTHING)
    (choice,) = answer.choices
    assert (choice.finish_reason, choice.message.role) == ("stop", "assistant")
    assert choice.message.content == turn.payload["response"]
    assert answer.usage
    assert answer.usage.total_tokens == 0
    more: dict[str, Any] = answer.to_dict()
    assert more["metadata"] == {"desk": "7"}
    assert more["docent"]["turn_id"] == str(turn.pk)
    talk = Conversation.objects.get()
    assert (more["conversation_id"], talk.user_id, talk.owner) == (talk.session, "visitor-7", clerk)


@pytest.mark.usefixtures("working")
def test_a_question_is_answered_in_pieces(ask: openai.OpenAI) -> None:
    chunks = list(
        ask.chat.completions.create(
            model=EVERYTHING,
            messages=QUESTION,
            stream=True,
            stream_options={"include_usage": True},
            **USUAL,
        )
    )
    *parts, usage = chunks
    deltas = [part.choices[0].delta for part in parts]
    assert (deltas[0].role, deltas[0].content) == ("assistant", "")
    assert len(deltas) > 4
    said = "".join(delta.content or "" for delta in deltas)
    assert said == Envelope.objects.get().payload["response"]
    assert [part.choices[0].finish_reason for part in parts[-2:]] == [None, "stop"]
    assert usage.choices == []
    assert usage.usage
    assert usage.usage.total_tokens == 0
    assert {each.usage for each in parts} == {None}
    assert {each.id for each in chunks} == {f"chatcmpl-{Envelope.objects.get().pk.hex}"}


@pytest.fixture
def connection(port: int) -> Iterator[HTTPConnection]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as opened:
        yield opened


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> set[object]:
    """What is open of the streams that this test begins."""
    opened = set[object]()
    monkeypatch.setattr(stream, "_streams", opened)
    return opened


@pytest.fixture
def streaming(
    connection: HTTPConnection, streams: set[object], clerk: User
) -> Iterator[HTTPResponse]:
    """The response to a stream that was begun, as it comes."""
    sent = factories.key(clerk)
    body = json.dumps({"model": EVERYTHING, "messages": QUESTION, "stream": True})
    headers = sent | {"Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", body, headers)
    with closing(connection.getresponse()) as response:
        yield response


@pytest.mark.usefixtures("working")
def test_a_stream_is_data_and_comments_alone_and_ends_with_done(streaming: HTTPResponse) -> None:
    assert streaming.headers["Content-Type"] == "text/event-stream"
    events = streaming.read().decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert {event[:2] for event in events[:-1]} <= {"da", ": "}
    last = json.loads(events[-3].removeprefix("data: "))
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["docent"]["status"] == "completed"


@pytest.mark.usefixtures("listening")
def test_who_leaves_a_stream_cancels_nothing(
    connection: HTTPConnection, streaming: HTTPResponse, streams: set[object]
) -> None:
    assert b'"role": "assistant"' in streaming.readline()
    streaming.close()
    connection.close()
    while streams:
        time.sleep(0.01)
    assert Envelope.objects.get().status == Status.RUNNING


def fail(turn: Envelope, code: str = "RSP-1") -> None:
    with transaction.atomic():
        locked = Envelope.objects.select_for_update().get(pk=turn.pk)
        locked.payload["response"] = f"Something went wrong: {code}"
        envelopes.end(locked, Status.FAILED, error_id=code)


@pytest.mark.usefixtures("listening")
def test_a_turn_that_fails_is_an_error_and_not_asked_again(
    ask: openai.OpenAI, streaming: HTTPResponse
) -> None:
    streaming.readline()
    fail(Envelope.objects.get())
    *_, told = streaming.read().decode().strip().split("\n\n")
    error = json.loads(told.removeprefix("data: "))["error"]
    assert (error["type"], error["error_id"]) == ("server_error", "RSP-1")
    turn = Envelope.objects.get()
    key = {"Idempotency-Key": "once"}
    Message.objects.filter(role=Message.Author.USER).update(idempotency_key="once")
    with pytest.raises(openai.InternalServerError) as caught:
        ask.with_options(max_retries=2).chat.completions.create(
            model=EVERYTHING, messages=QUESTION, extra_headers=key
        )
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.response.headers["x-request-id"] == str(turn.pk)
    assert Envelope.objects.count() == 1


def test_citations_stand_in_the_text_beside_it_and_at_its_end() -> None:
    source = {"title": "Holidays", "section": "Leave", "source": "a.md", "version": 3, "score": 0.9}
    listing = "Sources:\n- Holidays — Leave — a.md (version 3)"
    turn = factories.turn(
        factories.conversation(),
        response=f"Unused days end in March. [C1]\n\n{listing}",
        language="en",
        citations_used=[factories.CITATION],
        sources_used=[source],
    )
    answer = completion(turn, Asked(EVERYTHING))
    message = answer.choices[0].message
    assert message.content.endswith(listing)
    (annotation,) = message.annotations
    place = annotation.url_citation
    assert message.content[place.start_index : place.end_index] == "[C1]"
    assert (place.title, place.url) == (
        "Holidays — Leave > Carry over",
        "https://example.org/holidays",
    )
    assert [each.marker for each in answer.docent.citations] == ["C1"]
    assert [each.source for each in answer.docent.sources] == ["a.md"]


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
TOOL = {"type": "function", "function": {"name": "f"}}
SAYS = "assistant"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 2}, "n"),
        ({"tools": [TOOL]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"functions": [{}]}, "functions"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format.type"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "ash"}}, "audio"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"user": "x" * 129}, "user"),
        ({"user": {"name": "Ann"}}, "user"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"metadata": {"a": "\ud800"}}, "metadata"),
        ({"conversation_id": "a b"}, "conversation_id"),
        ({"model": None}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": QUESTION * 1001}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages"),
        ({"messages": [{"role": "user", "content": "a\0b"}]}, "messages"),
        ({"messages": [{"role": "user", "content": "a" * 8001}]}, "messages"),
        ({"messages": [*QUESTION, {"role": SAYS, "content": "Hi"}]}, "messages"),
        ({"messages": [{"role": "system", "content": "Hi"}]}, "messages"),
        ({"messages": [{"role": "boss", "content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "messages[0].content"),
    ],
)
@pytest.mark.usefixtures("listening")
def test_what_cannot_be_done_is_refused_and_nothing_begins(
    post: Post, more: dict[str, Any], param: str
) -> None:
    answer = post(**more)
    assert answer.status_code == HTTPStatus.BAD_REQUEST, answer.content
    error = answer.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert len(error["message"]) < 300
    assert not Envelope.objects.exists()


def test_a_refusal_says_why(post: Post) -> None:
    told = post(n=2).json()["error"]["message"]
    assert told == "n: Input should be less than or equal to 1. A question has one answer."


def test_every_error_has_the_shape_of_openai(client: Client, post: Post, clerk: User) -> None:
    def told(answer: Any) -> tuple[int, str]:
        (error,) = answer.json().values()
        assert error.keys() >= {"message", "type", "param", "code"}
        assert error["message"]
        return answer.status_code, error["code"]

    sent = factories.key(clerk)
    headers = sent
    assert told(client.get("/v1/models")) == (401, "invalid_api_key")
    wrong = {"Authorization": "Bearer wrong"}
    assert told(client.get("/v1/models", headers=wrong)) == (401, "invalid_api_key")
    assert told(client.get("/v1/files")) == (404, "not_found")
    assert told(client.get("/v1/chat/completions", headers=headers)) == (405, "method_not_allowed")
    form = client.post("/v1/chat/completions", {"model": "a"}, headers=headers)
    assert told(form) == (415, "unsupported_media_type")
    assert told(post(data="{")) == (400, "parse_error")
    assert told(post(data="[]")) == (400, "invalid")
    factories.collection()
    assert told(post()) == (503, "no_consumer")


@pytest.mark.usefixtures("listening")
def test_too_many_questions_are_told_when_to_come_back(
    ask: openai.OpenAI, settings: LazySettings, clerk: User
) -> None:
    settings.MAX_TURNS_PER_KEY = 1
    factories.turn(factories.conversation(owner=clerk), status=Status.RUNNING)
    with pytest.raises(openai.RateLimitError) as caught:
        ask.chat.completions.create(model=EVERYTHING, messages=QUESTION)
    assert caught.value.response.headers["retry-after"] == "5"
    assert caught.value.code == "rate_limit_exceeded"


def test_the_schema_describes_both_kinds_of_answers(client: Client) -> None:
    schema = client.get("/api/schema/", {"format": "json"}).json()
    operation = schema["paths"]["/v1/chat/completions"]["post"]
    assert operation["responses"]["200"]["content"].keys() == {
        "application/json",
        "text/event-stream",
    }
    assert operation["responses"].keys() >= {"400", "401", "404", "409", "415", "429", "503"}
