"""Client: replies of servers that each send them a little differently."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.llm.assembly import DONE, Assembly, Thoughts, parts
from agents.llm.requests import Reply, Usage


def split_up(body: bytes, size: int) -> list[bytes]:
    """The parts of a body that arrives in chunks of this many bytes."""

    async def chunks() -> AsyncIterator[bytes]:
        for place in range(0, len(body), size):
            yield body[place : place + size]

    async def collected() -> list[bytes]:
        return [part async for part in parts(chunks())]

    return asyncio.run(collected())


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_events_are_told_apart_however_they_are_cut(size: int) -> None:
    body = (
        ': wait\n\ndata: {"a": "x\u2028y\x85"}\r\n\r\nevent: more\ndata:{"b": 1}\n\ndata: [DONE]\n'
    )
    first, second, last = split_up(body.encode(), size)
    assert first.decode() == '{"a": "x\u2028y\x85"}'
    assert (second, last) == (b'{"b": 1}', DONE)


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_body_without_events_is_one_part_and_done(size: int) -> None:
    assert split_up(b'{\n  "a": 1\n}\n', size) == [b'{\n  "a": 1\n}', DONE]
    assert split_up(b"\n \n", size) == []


def assembled(*chunks: dict[str, Any]) -> Reply:
    assembly = Assembly(lambda text: None)
    for each in chunks:
        assembly.add(each)
    return assembly.reply("fake@scripted")


def piece(content: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": content, **more}, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "stop"), ("STOP", "stop"), ("eos", "stop"), ("end_turn", "stop"), (None, "stop"),
        ("length", "length"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"),
        ("tool_calls", "tool_calls"), ("function_call", "tool_calls"), (7, "stop"),
        ("malformed_function_call_of_some_kind", "malformed_function_c"),
    ],
)  # fmt: skip
def test_reasons_to_end_are_told_in_the_words_of_openai(said: Any, reason: str) -> None:
    assert assembled(piece("x", said)).finish_reason == reason


def test_strange_fields_are_left_out() -> None:
    odd: list[dict[str, Any]] = [
        {}, {"choices": None}, {"choices": [None, 3, {}]}, {"choices": [{"delta": None}]},
        {"choices": "x"}, {"usage": "x"}, {"usage": {"prompt_tokens": "12"}}, piece(12),
        piece({"text": "x"}), piece(None, tool_calls="x"), piece(None, tool_calls=[None]),
    ]  # fmt: skip
    reply = assembled(*odd, piece("fine"))
    assert (reply.text, reply.usage, reply.tool_calls) == ("fine", Usage(), ())


def test_content_in_parts_is_the_text_among_them() -> None:
    content = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "yes"}]
    assert assembled(piece(content)).text == "yes"


def test_the_message_at_the_end_of_a_stream_is_not_said_twice() -> None:
    whole = {"choices": [{"message": {"content": "all of it"}, "finish_reason": "stop"}]}
    assert assembled(piece("all "), piece("of it"), whole).text == "all of it"


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3}, Usage(9, 3)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(9, None, 4),
        ),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 40}}, Usage(9)),
        ({"prompt_tokens": -1, "completion_tokens": 10**12}, Usage()),
        ({"prompt_tokens": True, "completion_tokens": 1.5}, Usage()),
    ],
)
def test_only_counts_that_can_be_are_counted(fields: dict[str, Any], usage: Usage) -> None:
    assert assembled(piece("x"), {"usage": fields}).usage == usage


def test_tool_calls_that_are_all_numbered_zero_are_told_apart_by_their_ids() -> None:
    calls = [
        {"index": 0, "id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"
    ]
    tool_calls = assembled(*(piece(None, tool_calls=[each]) for each in calls)).tool_calls
    assert [(each.id, each.name) for each in tool_calls] == [("a", "a"), ("b", "b")]


def test_tool_calls_without_numbers_go_on_until_the_next_id() -> None:
    calls: list[dict[str, Any]] = [
        {"id": "a", "function": {"name": "search", "arguments": '{"q'}},
        {"function": {"arguments": '": 1}'}},
        {"id": "b", "function": {"name": "stop"}},
    ]
    tool_calls = assembled(*(piece(None, tool_calls=[each]) for each in calls)).tool_calls
    assert [each.arguments for each in tool_calls] == ['{"q": 1}', ""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hello.", "Hello."),
        ("<think>no</think>Hello.", "Hello."),
        ("\n<think>\na <think> b\n</think>\n\nHello <think>.", "Hello <think>."),
        ("<thinking is hard>", "<thinking is hard>"),
        ("<thi", "<thi"),
        ("<think>never ended", ""),
        ("<think>a</think> <think>b</think>Hello.", "Hello."),
        ("no beginning</think>\n\nHello.", "Hello."),
        ("no beginning</think>", ""),
        ("The mark `</think>` ends it.", "The mark `</think>` ends it."),
        ("Hello <", "Hello <"),
        ("  Hello", "  Hello"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 100])
def test_thoughts_are_kept_back_however_they_are_cut(text: str, said: str, size: int) -> None:
    heard: list[str] = []
    thoughts = Thoughts(heard.clear)
    for place in range(0, len(text), size):
        more = thoughts.without(text[place : place + size])
        heard.append(more)
    assert "".join(heard) + thoughts.rest() == said
