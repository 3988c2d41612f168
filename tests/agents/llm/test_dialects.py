"""Dialects: what the refusals of real servers say that the server does not take."""

from typing import Any

import pytest

from agents.llm.dialects import BEGINNINGS, Dialect
from tests.agents.llm.asking import shaped_request

# As OpenAI, Mistral, Google, vLLM, Groq, LM Studio and llama.cpp word them.
REFUSALS: list[tuple[str, dict[str, Any]]] = [
    (
        "max_tokens Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        {"limit": "max_completion_tokens"},
    ),
    (
        "temperature Unsupported value: 'temperature' does not support 0 with this model. Only "
        "the default (1) value is supported.",
        {"heated": False},
    ),
    (
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
        "model.",
        {"form": "json_object"},
    ),
    (
        "Invalid schema for response_format 'Verdict': In context=('properties', 'why'), 'format' "
        "is not permitted.",
        {"form": "json_object"},
    ),
    ("[[['body', 'stream_options'], 'Extra inputs are not permitted']]", {"counted": False}),
    (
        'Invalid JSON payload received. Unknown name "stream_options": Cannot find field.',
        {"counted": False},
    ),
    ("This model does not support streaming.", {"streamed": False}),
    ("'response_format.type' must be 'json_schema' or 'text'", {"form": "json_object"}),
    ("System role not supported", {"system": False}),
    ("Only user and assistant roles are supported, role system is not", {"system": False}),
]


@pytest.mark.parametrize(("refusal", "change"), REFUSALS)
def test_the_part_that_is_refused_is_said_otherwise(refusal: str, change: dict[str, Any]) -> None:
    assert Dialect().without(refusal, shaped=True) == Dialect(**change)


@pytest.mark.parametrize(
    "refusal",
    [
        "",
        "Bad request",
        "upstream error",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "This model's maximum context length is 8192 tokens. However, max_tokens is 1000",
    ],
)
def test_what_is_only_about_this_question_changes_nothing(refusal: str) -> None:
    assert Dialect().without(refusal, shaped=True) is None


def test_every_part_can_be_refused_and_there_is_an_end_to_it() -> None:
    dialect, steps = Dialect(), 0
    refusal = "stream_options max_tokens max_completion_tokens temperature response_format stream"
    while plainer := dialect.without(refusal, shaped=True):
        dialect, steps = plainer, steps + 1
    assert steps == 7
    assert set(dialect.parameters("fake", shaped_request())) == {"model", "messages"}


def test_anthropic_is_told_the_shape_in_the_prompt_from_the_first_call_on() -> None:
    told = BEGINNINGS["anthropic"].parameters("claude", shaped_request())
    assert "response_format" not in told
    assert "JSON schema" in told["messages"][0]["content"]
