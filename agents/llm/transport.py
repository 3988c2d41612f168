"""Transport: one request to one provider over HTTP, through the `openai` package."""

import time
from collections.abc import Callable
from typing import Any

import openai
from httpx2 import Timeout

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply, Request, Usage
from knowledge.providers import provider, split

OnText = Callable[[str], None]
CONNECT_SECONDS = 5.0


def send(request: Request, *, seconds: float, on_text: OnText | None = None) -> Reply:
    """Return the reply of one attempt. Raises ModelFailure with a named outcome.

    `on_text` is handed every piece of the reply while it arrives.
    """
    name, where = split(request.model)
    server = provider(where)
    client = openai.OpenAI(
        base_url=server.base_url,
        api_key=server.api_key or "none",
        organization="",
        project="",
        max_retries=0,
        timeout=Timeout(seconds, connect=CONNECT_SECONDS),
    )
    begun = time.monotonic()
    options: dict[str, Any] = {}
    if request.schema:
        options["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": request.schema_name, "schema": request.schema, "strict": True},
        }
    messages: Any = list(request.messages)
    pieces: list[str] = []
    first: float | None = None
    usage, finish = Usage(), "stop"
    try:
        stream = client.chat.completions.create(
            model=name,
            messages=messages,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            stream=True,
            stream_options={"include_usage": True},
            **options,
        )
        for chunk in stream:
            if chunk.usage:
                usage = Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                if text := choice.delta.content:
                    first = first or time.monotonic() - begun
                    pieces.append(text)
                    if on_text:
                        on_text(text)
    except openai.OpenAIError as error:
        raise ModelFailure(Outcome.UNREACHABLE, str(error)) from error
    return Reply("".join(pieces), finish, usage, request.model, time.monotonic() - begun, first)
