"""Client: what one attempt at a provider comes to, by its outcome."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from agents.llm import assembly, client
from agents.llm.outcomes import ModelFailure, Outcome, refuse_unusable
from agents.llm.requests import Reply, Request, ToolCall
from knowledge.providers import Provider
from tests.agents.llm.probe import request
from tests.scripted import KEY, Response, Scripted, scripted

LONG = " ".join(map(str, range(300)))


@pytest.fixture
def models() -> Iterator[Scripted]:
    """The server alone: nothing is stored here."""
    with scripted() as server:
        yield server


def failure(
    models: Scripted, script: Response, *, seconds: float = 5.0, **changes: Any
) -> ModelFailure:
    """What it comes to when the server does this."""
    models.says("probe", script)
    with pytest.raises(ModelFailure) as caught:
        refuse_unusable(client.send(request(**changes), seconds=seconds))
    return caught.value


def error(message: str, status: int = 400, **more: Any) -> Response:
    return Response(status=status, body=json.dumps({"error": {"message": message, **more}}))


FAILURES = {
    "cut at the limit": (Response("half", finish="length"), Outcome.TRUNCATED, "_MAX_TOKENS"),
    "refused": (Response("", refusal="I can't."), Outcome.REFUSED, "I can't"),
    "filtered": (Response("", finish="content_filter"), Outcome.FILTERED, "filter"),
    "filtered by google": (Response("", finish="SAFETY"), Outcome.FILTERED, "filter"),
    "filtered question": (
        error("no", code="content_filter"), Outcome.FILTERED, "filter",
    ),
    "no text": (Response(""), Outcome.EMPTY, "empty"),
    "no choice": (Response("x", choices=False), Outcome.EMPTY, "empty"),
    "no choice, whole": (Response("x", choices=False, whole=True), Outcome.EMPTY, "empty"),
    "key": (Response(status=401), Outcome.KEY_REFUSED, "SCRIPTED_API_KEY"),
    "key for another model": (Response(status=403), Outcome.KEY_REFUSED, "SCRIPTED_API_KEY"),
    "key, as google says it": (
        error("API key not valid. Please pass a valid API key."), Outcome.KEY_REFUSED, "_API_KEY",
    ),
    "no such model, as openrouter says it": (
        error("fake is not a valid model ID"), Outcome.MODEL_MISSING, "model's name",
    ),
    "no credit": (error("x", 429, code="insufficient_quota"), Outcome.KEY_REFUSED, "credit"),
    "no such model": (Response(status=404), Outcome.MODEL_MISSING, "model's name"),
    "asked too much": (Response(status=429), Outcome.RATE_LIMITED, "more than it allows"),
    "server error": (Response(status=500), Outcome.SERVER_ERROR, "fails (500)"),
    "overloaded": (Response(status=529), Outcome.SERVER_ERROR, "fails (529)"),
    "rejected": (Response(status=400), Outcome.REJECTED, "does not take"),
    "too long": (
        error("This model's maximum context length is 8192 tokens"),
        Outcome.REJECTED,
        "MAX_CONTEXT_LENGTH",
    ),
    "reset": (Response(reset=True), Outcome.UNREACHABLE, "SCRIPTED_BASE_URL"),
    "cut in the middle": (Response(LONG, cut_after=3), Outcome.CUT_OFF, "broke off"),
    "no end": (Response(LONG, finish="", done=False), Outcome.CUT_OFF, "broke off"),
    "error instead of an end": (Response(LONG, finish="error"), Outcome.CUT_OFF, "broke off"),
    "empty body": (Response(body=""), Outcome.CUT_OFF, "broke off"),
    "a web page": (Response(body="<html>Log in</html>"), Outcome.SERVER_ERROR, "_BASE_URL"),
    "another API": (Response(body='{"status": "up"}'), Outcome.SERVER_ERROR, "_BASE_URL"),
    "a list": (Response(body="[1, 2]"), Outcome.SERVER_ERROR, "_BASE_URL"),
    "error in a reply": (
        Response(body='{"error": {"code": 429, "message": "later"}}'),
        Outcome.RATE_LIMITED, "later",
    ),
    "error in a stream": (
        Response(body='data: {"error": "out of memory"}\n\n'),
        Outcome.SERVER_ERROR, "out of memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_every_failure_has_its_outcome_and_a_sentence_with_the_remedy(
    models: Scripted, name: str
) -> None:
    script, outcome, remedy = FAILURES[name]
    error = failure(models, script)
    assert error.outcome is outcome
    assert remedy in str(error)
    assert f"fake@scripted at {models.server.base_url}" in str(error)


def test_a_server_that_never_answers_is_a_timeout(models: Scripted) -> None:
    error = failure(models, Response(hang=True), seconds=0.2)
    assert error.outcome is Outcome.TIMEOUT
    assert "did not answer within 0.2 s: raise <ROLE>_TIMEOUT" in str(error)


def test_a_reply_that_drips_beyond_its_seconds_is_too_slow(models: Scripted) -> None:
    error = failure(models, Response(LONG, seconds=600, first_after=0), seconds=1.5)
    assert error.outcome is Outcome.TOO_SLOW
    assert "(6 characters so far)" in str(error)


def circle(models: Scripted) -> Response:
    return Response(status=307, headers={"Location": f"{models.server.base_url}/again?q=secret"})


def test_a_redirect_is_not_followed_and_the_prompt_sent_once(models: Scripted) -> None:
    error = failure(models, circle(models))
    assert error.outcome is Outcome.MODEL_MISSING
    assert "/v1/again (307), which is not followed: set SCRIPTED_BASE_URL" in str(error)
    assert len(models.server.ledger) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_reply_far_beyond_its_tokens_is_not_read_on(models: Scripted, whole: bool) -> None:
    endless = " ".join(map(str, range(200_000)))
    heard: list[str] = []
    models.says("probe", Response(endless, whole=whole))
    reply = client.send(request(), seconds=30.0, on_text=heard.append)
    assert reply.finish_reason == "excess"
    assert len("".join(heard)) < 3000
    with pytest.raises(ModelFailure, match="not read further") as caught:
        refuse_unusable(reply, whole=False)
    assert caught.value.outcome is Outcome.TRUNCATED
    # The connection of a stream, which has more to say, is not used again.
    models.says("probe", Response("yes"))
    client.send(request(), seconds=5.0)
    assert models.server.connections == (1 if whole else 2)


def test_more_room_is_left_for_what_is_thought(models: Scripted) -> None:
    thought = " ".join(map(str, range(1000)))
    assert reply_to(models, Response(f"<think>{thought}</think>Yes.")).text == "Yes."
    beside = Response("Yes.", extra={"reasoning_content": " ".join(map(str, range(5000)))})
    assert reply_to(models, beside).finish_reason == "excess"


@pytest.mark.parametrize("start", ["", "data: "])
def test_one_part_of_an_answer_does_not_fill_the_memory(models: Scripted, start: str) -> None:
    models.says("probe", Response(body=start + "x" * (assembly.LONGEST_PART + 1)))
    assert client.send(request(), seconds=30.0).finish_reason == "excess"


def test_a_refusal_is_read_as_far_as_it_can_be_of_use(
    models: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LONGEST_REFUSAL", 5)
    error = failure(models, Response(status=400, body="no, no, no"))
    assert str(error).endswith("(400): no, n")


PHRASE = "The water goes into the cup, and then "


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("text", [PHRASE * 500, "".join(f"{n}. {PHRASE}\n" for n in range(500))])
def test_a_phrase_without_end_is_cut_off_early(models: Scripted, text: str, whole: bool) -> None:
    models.says("probe", Response(text, whole=whole))
    reply = client.send(request(max_tokens=10_000), seconds=30.0)
    assert reply.finish_reason == "loop"
    assert len(reply.text) < 1000


def test_a_prompt_that_comes_back_is_cut_off_early(models: Scripted) -> None:
    told = " ".join(f"rule{n} says that {n} is told" for n in range(500))
    messages = ({"role": "system", "content": f"# probe\n\n{told}"}, *request().messages[1:])
    models.says("probe", Response(told))
    reply = client.send(request(messages=messages, max_tokens=10_000), seconds=30.0)
    assert reply.finish_reason == "echo"
    assert len(reply.text) < 1000


def test_what_the_user_says_may_be_repeated(models: Scripted) -> None:
    told = " ".join(bin(n).translate({48: "a", 49: "c"}) for n in range(100, 200))
    messages = (*request().messages[:1], {"role": "user", "content": told})
    asked = request(messages=messages, max_tokens=10_000)
    models.says("probe", Response(told))
    assert client.send(asked, seconds=30.0).text == told


def test_what_turns_out_to_be_a_thought_is_void(models: Scripted) -> None:
    heard: list[str] = []
    models.says("probe", Response("The user wants water.\n</think>\n\nIt is there."))
    reply = client.send(
        request(), seconds=5.0, on_text=heard.append, on_void=lambda: heard.append("--")
    )
    assert reply.text == "It is there."
    assert "".join(heard).partition("--")[2] == "It is there."


def test_nobody_listening_is_unreachable(models: Scripted) -> None:
    settings.PROVIDERS["gone"] = Provider("gone", "http://127.0.0.1:9/v1")
    error = failure(models, Response("x"), model="fake@gone")
    assert error.outcome is Outcome.UNREACHABLE
    assert "GONE_BASE_URL" in str(error)


def test_a_provider_that_needs_a_key_is_not_asked_without_one(models: Scripted) -> None:
    settings.PROVIDERS["openai"] = Provider("openai", "https://api.openai.com/v1")
    error = failure(models, Response("x"), model="gpt-4o-mini@openai")
    assert error.outcome is Outcome.KEY_REFUSED
    assert "set OPENAI_API_KEY" in str(error)


def test_a_model_of_nobody_is_missing(models: Scripted) -> None:
    assert failure(models, Response("x"), model="fake@nobody").outcome is Outcome.MODEL_MISSING


@pytest.mark.parametrize(
    "script",
    [
        error(f"bad key {KEY}"),
        Response(body=f"<p>{KEY}</p>"),
        Response(body=f'{{"error": "{KEY}"}}'),
    ],
)
def test_the_key_stands_in_no_sentence(models: Scripted, script: Response) -> None:
    assert KEY not in str(failure(models, script))


def test_retry_after_is_told_in_seconds(models: Scripted) -> None:
    waiting = Response(status=429, headers={"Retry-After": "7"})
    assert failure(models, waiting).retry_after == 7
    assert failure(models, Response(status=429)).retry_after is None


def reply_to(models: Scripted, *script: Response, **changes: Any) -> Reply:
    models.says("probe", *script)
    return client.send(request(**changes), seconds=5.0)


def test_pieces_are_handed_on_in_order_and_the_reply_is_all_of_them(models: Scripted) -> None:
    models.says("probe", Response("Über 12 °C 🙂 and more of it", extra={"mood": [1]}))
    heard: list[str] = []
    reply = client.send(request(), seconds=5.0, on_text=heard.append)
    assert len(heard) > 1
    assert "".join(heard) == reply.text == "Über 12 °C 🙂 and more of it"
    assert reply.finish_reason == "stop"
    assert reply.usage.output_tokens
    assert reply.first_token_seconds is not None
    assert reply.first_token_seconds <= reply.seconds


def test_a_server_that_ignores_the_wish_for_a_stream_is_understood(models: Scripted) -> None:
    heard: list[str] = []
    models.says("probe", Response("all at once", whole=True))
    reply = client.send(request(), seconds=5.0, on_text=heard.append)
    assert heard == [reply.text] == ["all at once"]
    assert reply.usage.input_tokens is not None


def test_missing_usage_and_finish_reason_are_no_failure(models: Scripted) -> None:
    for script in (
        Response("yes", usage=False, finish=""),
        Response("yes", usage=False, whole=True, finish=""),
    ):
        reply = reply_to(models, script)
        assert (reply.text, reply.finish_reason) == ("yes", "stop")
        assert reply.usage.input_tokens is None


def test_a_stream_without_its_last_word_is_whole_when_it_says_why_it_ended(
    models: Scripted,
) -> None:
    assert reply_to(models, Response("yes", done=False)).text == "yes"


def test_connections_are_used_again(models: Scripted) -> None:
    for script in (
        Response("one"),
        Response(status=500),
        Response("two", whole=True),
        Response("three"),
    ):
        models.says("probe", script)
        if script.status == 200:
            client.send(request(), seconds=5.0)
        else:
            failure(models, script)
    assert models.server.connections == 1


def test_a_reply_is_there_before_its_connection_is_read_out(
    models: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DRAIN_SECONDS", 3600.0)
    said = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n"
    goes_on = Response(body=body, headers={"Content-Length": "9999"})
    assert reply_to(models, goes_on).text == "yes"


def test_nothing_a_user_or_model_says_breaks_the_request(models: Scripted) -> None:
    odd = (*request().messages, {"role": "user", "content": "half \ud83d of an emoji, \0"})
    models.says("probe", Response(pieces=["a\ud83d", "\ude42 \0", "\udc00"]))
    assert client.send(request(messages=odd), seconds=5.0).text == "a🙂 \ufffd\ufffd"


def test_what_a_model_thinks_aloud_is_not_part_of_the_reply(models: Scripted) -> None:
    thinking = "<think>The user wants {x}.</think>\n\nHello."
    assert reply_to(models, Response(thinking)).text == "Hello."
    assert reply_to(models, Response(thinking, whole=True)).text == "Hello."


def test_tool_calls_are_put_together_from_their_pieces(models: Scripted) -> None:
    script = Response(
        finish="tool_calls",
        tool_calls=[
            {"index": 0, "id": "a", "function": {"name": "search", "arguments": '{"q": '}},
            {"index": 0, "function": {"arguments": '"steam"}'}},
            {"index": 1, "id": "b", "function": {"name": "stop", "arguments": "{}"}},
        ],
    )
    reply = reply_to(models, script)
    assert reply.tool_calls == (
        ToolCall("a", "search", '{"q": "steam"}'), ToolCall("b", "stop", "{}"),
    )  # fmt: skip
    assert reply.finish_reason == "tool_calls"
    with pytest.raises(ModelFailure, match="the reply is empty"):
        refuse_unusable(reply)


def test_tool_calls_of_a_whole_completion_are_understood(models: Scripted) -> None:
    calls = [
        {"id": "a", "function": {"name": "search", "arguments": {"q": "steam"}}},
        {"id": "b", "function": {"name": "stop", "arguments": "{}"}},
    ]
    reply = reply_to(models, Response(finish="tool_calls", tool_calls=calls, whole=True))
    assert [each.arguments for each in reply.tool_calls] == ['{"q": "steam"}', "{}"]


def test_a_request_that_is_no_longer_waited_for_is_given_up(models: Scripted) -> None:
    def break_off(text: str) -> None:
        raise KeyError(text)

    models.says("probe", Response(LONG, seconds=600, first_after=0))
    with pytest.raises(KeyError):
        client.send(request(), seconds=60.0, on_text=break_off)


def test_the_digest_of_a_request_changes_with_every_part_of_it() -> None:
    changes: list[dict[str, Any]] = [
        {}, {"max_tokens": 7}, {"temperature": 1.0}, {"model": "x@scripted"},
        {"schema": {"type": "object"}},
    ]  # fmt: skip
    assert len({Request.digest(request(**each)) for each in changes}) == len(changes)


def test_arguments_without_end_are_a_loop_and_calls_that_are_alike_are_none(
    models: Scripted,
) -> None:
    endless = [
        {"index": 0, "id": "a", "function": {"name": "say", "arguments": PHRASE}} for _ in range(50)
    ]
    said = Response(finish="tool_calls", tool_calls=endless)
    assert reply_to(models, said).finish_reason == "loop"
    alike = [
        {"index": place, "id": f"{place}", "function": {"name": "say", "arguments": PHRASE}}
        for place in range(50)
    ]
    reply = reply_to(models, Response(finish="tool_calls", tool_calls=alike))
    assert (reply.finish_reason, len(reply.tool_calls)) == ("tool_calls", 50)
