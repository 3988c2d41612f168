"""OpenAI reply: a turn in the shapes of OpenAI's API: whole, in chunks, or as an error."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.db import connection
from pydantic import BaseModel, ConfigDict

from agents.attributes import Citation, Source
from agents.models import Envelope
from agents.names import Route, Status
from conversations.answers import MARKER, reply, without_sources
from conversations.errors import Forgotten
from conversations.openai_errors import openai_error
from conversations.openai_talk import told
from conversations.services import current
from conversations.stream import BLOCK_MS, FIRST, HEARTBEAT, Listener

# Words of a delta, with the space around them.
PIECE = re.compile(r"\s*(?:\S+\s+){1,8}|\s*\S+\s*")
# One that runs is waited for until long after its deadline.
FAILED = {Status.FAILED: 500, Status.EXPIRED: 504, Status.RUNNING: 504}
STILL_WORKING = "The answer takes longer than it may. Try again in a moment."
DONE = b"data: [DONE]\n\n"


class Place(BaseModel):
    """Where a marker stands in the text, in characters, and what it cites."""

    start_index: int
    end_index: int
    title: str
    url: str  # of a document that is no web page: its file


class Annotation(BaseModel):
    """A citation, as OpenAI's web search annotates its answers."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: Place


class AssistantMessage(BaseModel):
    """The answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation] = []


class Choice(BaseModel):
    """The only one."""

    index: Literal[0] = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class TokenUsage(BaseModel):
    """What was asked of language models for the turn, all roles together; 0 without one."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Particulars(BaseModel):
    """What else is known of the turn, as in the reply of `POST /api/chat/`."""

    model_config = ConfigDict(extra="ignore")

    turn_id: str
    status: Status
    mode: Literal["model", "extractive", "mixed"]
    route: Route | None
    language: str | None
    confidence: float | None
    citations: list[Citation]
    sources: list[Source]
    suggested_actions: list[str]


class Completion(BaseModel):
    """The answer of `POST /v1/chat/completions`."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage
    conversation_id: str
    metadata: dict[str, str] | None = None
    docent: Particulars


class TurnFailed(Exception):
    """The turn has no answer; `status` is that of HTTP, `error` in the shape of OpenAI."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(error["error"]["message"])
        self.status, self.error = status, error


@dataclass(frozen=True)
class Asked:
    """What of a request its answer repeats."""

    model: str
    metadata: dict[str, str] | None = None
    with_usage: bool = False


def completion(envelope: Envelope, asked: Asked) -> Completion:
    """Return a turn that has ended. Raises TurnFailed for one that has no answer."""
    shown = reply(envelope)
    status = Status(envelope.status)
    if http_status := FAILED.get(status):
        said = shown["reply"] or STILL_WORKING
        body = {"code": status.value, "detail": said, "error_id": envelope.error_id}
        raise TurnFailed(http_status, openai_error(http_status, body))
    text = told(envelope, shown["reply"])
    usage = shown["usage"]
    taken, given = int(usage["input_tokens"]), int(usage["output_tokens"])
    return Completion(
        id=f"chatcmpl-{envelope.pk.hex}",
        created=int(envelope.create_ts.timestamp()),
        model=asked.model,
        choices=[
            Choice(message=AssistantMessage(content=text, annotations=annotations(text, shown)))
        ],
        usage=TokenUsage(prompt_tokens=taken, completion_tokens=given, total_tokens=taken + given),
        conversation_id=shown["session_id"],
        metadata=asked.metadata,
        docent=Particulars.model_validate(shown),
    )


def annotations(text: str, shown: dict[str, Any]) -> list[Annotation]:
    """Return one for each marker of the text that cites something; the list of sources has none."""
    cited = {each["marker"]: each for each in shown["citations"]}
    end = text.rfind(shown["reply"]) + len(without_sources(shown))
    return [
        Annotation(
            url_citation=Place(
                start_index=marker.start(),
                end_index=marker.end(),
                title=" — ".join(filter(None, (cited[marker[1]][x] for x in ("title", "section")))),
                url=cited[marker[1]]["source"],
            )
        )
        for marker in MARKER.finditer(text, 0, end)
        if marker[1] in cited
    ]


async def deltas(listener: Listener, envelope: Envelope, asked: Asked) -> AsyncIterator[bytes]:
    """Yield a turn as the events of `stream: true`.

    While it goes on nothing but comments: what a model drafts may be withdrawn, which OpenAI's
    protocol cannot say. The answer follows in pieces once it stands.
    """
    head: dict[str, Any] = {
        "id": f"chatcmpl-{envelope.pk.hex}",
        "object": "chat.completion.chunk",
        "created": int(envelope.create_ts.timestamp()),
        "model": asked.model,
    }
    if asked.with_usage:
        head["usage"] = None
    yield chunk(head, {"role": "assistant", "content": ""})
    try:
        while (answer := await _ended(envelope, asked)) is None:
            yield HEARTBEAT
            # The doorbell; what is true is asked of the row, also when Redis is away.
            await listener.read(envelope.result_list, FIRST, block=BLOCK_MS)
    except TurnFailed as failure:
        yield event(failure.error)
        return
    for part in _parts(head, answer):
        yield part
    if asked.with_usage:
        yield event(head | {"choices": [], "usage": answer.usage.model_dump()})
    yield DONE


def _parts(head: dict[str, Any], answer: Completion) -> Iterator[bytes]:
    """Yield the text in pieces, then its citations, then its end."""
    message = answer.choices[0].message
    for piece in PIECE.findall(message.content):
        yield chunk(head, {"content": piece})
    if message.annotations:
        noted = [each.model_dump() for each in message.annotations]
        yield chunk(head, {"annotations": noted})
    rest = answer.model_dump(mode="json", include={"conversation_id", "metadata", "docent"})
    yield chunk(head | rest, {}, finish_reason="stop")


def chunk(head: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    """Return one chunk of the stream."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return event(head | {"choices": [choice]})


def event(data: dict[str, Any]) -> bytes:
    """Return an event without a name, as OpenAI's are."""
    return f"data: {json.dumps(data)}\n\n".encode()


@sync_to_async
def _ended(envelope: Envelope, asked: Asked) -> Completion | None:
    """Return the answer of a turn; None while it goes on. Raises TurnFailed."""
    try:
        turn = current(envelope)
        return completion(turn, asked) if turn.ended else None
    except Forgotten as error:
        body = {"code": error.code, "detail": str(error)}
        raise TurnFailed(404, openai_error(404, body)) from error
    finally:
        connection.close()
