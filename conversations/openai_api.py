"""OpenAI API: Docent for clients of OpenAI's API: models, chat completions and embeddings."""

import base64
import logging
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from pydantic import BaseModel
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api import asker as asker_of
from conversations.api import waited
from conversations.authentication import key_of
from conversations.errors import EmbeddingAway, OtherAssistant
from conversations.openai_errors import OpenAIError
from conversations.openai_models import (
    OfferedModel,
    embedding_model_named,
    model_named,
    offered,
)
from conversations.openai_reply import Asked, Completion, TurnFailed, completion, deltas
from conversations.openai_request import CompletionRequest, EmbeddingsRequest, invalid
from conversations.openai_request import read as read_body
from conversations.openai_talk import latest, session_of
from conversations.reach import bound_to
from conversations.services import Brought, ask, begun_with
from conversations.stream import EVENTS, MEDIA_TYPE, streamed
from conversations.turn_memory import tokens
from knowledge.embedding.embedder import Vectors
from knowledge.embedding.registry import named
from knowledge.errors import EmbeddingUnavailable
from knowledge.identifiers import Scope

log = logging.getLogger(__name__)


class ModelEntry(BaseModel):
    """What can be asked."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["docent"] = "docent"
    name: str


class ModelList(BaseModel):
    """All that can be asked with this key."""

    object: Literal["list"] = "list"
    data: list[ModelEntry]


class EmbeddingEntry(BaseModel):
    """One vector: numbers, or for `base64` the bytes of 32-bit floats, the lowest first."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    """About how many tokens the texts have."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    """The vectors of the texts, in their order."""

    object: Literal["list"] = "list"
    data: list[EmbeddingEntry]
    model: str
    usage: EmbeddingUsage


class JSONWhateverIsAccepted(BaseContentNegotiation):
    """Clients of OpenAI's API accept what they like and get JSON, or the stream they asked for."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """Return the parser of what was sent, if it is JSON."""
        sent = request.content_type or ""
        is_json = sent.partition(";")[0].strip().lower() == JSONParser.media_type
        return parsers[0] if is_json else None

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return that of JSON."""
        return renderers[0], renderers[0].media_type


class OpenAIView(APIView):
    """A view that takes and answers JSON alone."""

    scope = Scope.CHAT
    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = JSONWhateverIsAccepted


class ModelsView(OpenAIView):
    """What can be asked."""

    @extend_schema(operation_id="list_models", responses=ModelList)
    def get(self, request: Request) -> Response:
        """List what this key may ask: assistants, collections, and `docent/all` for everything."""
        entries = [entry(each) for each in offered(bound_to(request.auth))]
        return Response(ModelList(data=entries).model_dump())


class ModelView(OpenAIView):
    """One thing that can be asked."""

    @extend_schema(responses=ModelEntry)
    def get(self, request: Request, name: str) -> Response:
        """Return one of `GET /v1/models`."""
        return Response(entry(model_named(name, bound_to(request.auth))).model_dump())


def entry(model: OfferedModel) -> ModelEntry:
    """Return a model as it is listed."""
    return ModelEntry(id=model.name, created=model.created, name=model.title)


class CompletionsView(OpenAIView):
    """One turn, as OpenAI's API has it."""

    @extend_schema(
        request=CompletionRequest,
        responses={
            (HTTPStatus.OK, JSONRenderer.media_type): Completion,
            (HTTPStatus.OK, MEDIA_TYPE): EVENTS,
            HTTPStatus.GATEWAY_TIMEOUT: OpenAIError,
        },
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                str,
                OpenApiParameter.HEADER,
                description="Sent again with the same key, a message begins no other turn.",
            )
        ],
        examples=[
            OpenApiExample(
                "A question",
                {
                    "model": "docent/all",
                    "messages": [{"role": "user", "content": "How do I book a trip?"}],
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Answer the last message from the documents; with `stream`, as server-sent events.

        The messages before it are the history. System messages are a wish for the tone.
        """
        body = read_body(CompletionRequest, request.data)
        question, said = body.question(), latest(body.said_before())
        bound = bound_to(request.auth)
        model = model_named(body.model, bound)
        asker = asker_of(request, body.user or "")
        key = request.headers.get("Idempotency-Key", "")
        session = body.conversation_id or session_of(asker, model, said, key)
        if begun_with(asker, session) not in {None, model.assistant}:
            raise OtherAssistant
        envelope = ask(
            question,
            asker,
            session=session,
            assistant=model.assistant,
            collections=model.collections,
            idempotency_key=key,
            brought=Brought(said, body.wish()),
        )
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        asked = Asked(model.name, body.metadata, with_usage)
        response: HttpResponseBase
        if body.stream:
            parts = partial(deltas, envelope=envelope, asked=asked)
            response = streamed(parts, key_of(request), opening=b"")
        else:
            response = self._waited(waited(request, envelope), asked)
        response["X-Request-Id"] = str(envelope.pk)
        return response

    def _waited(self, envelope: Any, asked: Asked) -> Response:
        try:
            answer = completion(envelope, asked)
        except TurnFailed as failure:
            # OpenAI's clients would ask twice more, and pay for it.
            return Response(failure.error, failure.status, headers={"X-Should-Retry": "false"})
        return Response(answer.model_dump(mode="json"))


class EmbeddingsView(OpenAIView):
    """The vectors by which documents are found."""

    @extend_schema(request=EmbeddingsRequest, responses=EmbeddingList)
    def post(self, request: Request) -> Response:
        """Return the vectors of texts, by the embedding model of what `model` names.

        What a text has beyond the window of the model is not in its vector.
        """
        body = read_body(EmbeddingsRequest, request.data)
        name = embedding_model_named(body.model, bound_to(request.auth))
        try:
            embedder = named(name)
            if body.dimensions not in {None, embedder.dimensions}:
                raise invalid("dimensions", f"Vectors have {embedder.dimensions} dimensions.")
            vectors = embedder.encode(body.texts)
        except EmbeddingUnavailable as error:
            log.warning("embeddings for a client: %s", error)
            raise EmbeddingAway from error
        count = sum(map(tokens, body.texts))
        listed = EmbeddingList(
            data=_listed(vectors, in_bytes=body.encoding_format == "base64"),
            model=embedder.name,
            usage=EmbeddingUsage(prompt_tokens=count, total_tokens=count),
        )
        return Response(listed.model_dump())


def _listed(vectors: Vectors, *, in_bytes: bool) -> list[EmbeddingEntry]:
    """Return vectors as numbers, or as OpenAI's own clients ask for them."""
    rows = vectors.astype("<f4")
    return [
        EmbeddingEntry(
            index=place,
            embedding=base64.b64encode(row.tobytes()).decode() if in_bytes else row.tolist(),
        )
        for place, row in enumerate(rows)
    ]
