"""API: the one shape of errors."""

import logging
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from redis import RedisError
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from agents.steps import faults
from conversations.errors import (
    Busy,
    ConversationError,
    EmbeddingAway,
    ForeignCollection,
    Forgotten,
    KeyReused,
    NobodyListens,
    NothingToRead,
    OtherAssistant,
    OtherDocuments,
    OtherUser,
    StillTakenIn,
    TooManyTurns,
    TurnInProgress,
    UnknownAssistant,
    UnknownModel,
)
from conversations.openai_errors import is_openai, openai_error
from knowledge.errors import KnowledgeError, UnknownCollection

log = logging.getLogger(__name__)

STATUS: dict[type[Exception], int] = {
    NobodyListens: 503,
    StillTakenIn: 503,
    TurnInProgress: 409,
    KeyReused: 422,
    TooManyTurns: 429,
    Busy: 429,
    Forgotten: 404,
    UnknownAssistant: 404,
    ForeignCollection: 404,
    OtherAssistant: 409,
    OtherDocuments: 409,
    OtherUser: 409,
    NothingToRead: 503,
    UnknownModel: 404,
    EmbeddingAway: 503,
}
AWAY = {
    OperationalError: "PostgreSQL does not answer. Try again in a moment.",
    InterfaceError: "PostgreSQL does not answer. Try again in a moment.",
    RedisError: "Redis does not answer. Try again in a moment.",
}
NOT_FOUND = "There is nothing here under that address, or it is not yours."


def explain(error: Exception, context: dict[str, Any]) -> Response:
    """Turn any exception of a view into `{code, detail, error_id?}`; nothing of ours leaks.

    Below /v1 in the shape of OpenAI's API.
    """
    response = _explained(error, context)
    if is_openai(context["request"].path):
        response.data = openai_error(response.status_code, response.data)
    return response


def _explained(error: Exception, context: dict[str, Any]) -> Response:
    if isinstance(error, UnknownCollection):
        # Nobody is told of others by their names.
        return _error(404, error.code, error.here)
    if isinstance(error, ConversationError | KnowledgeError):
        response = _error(STATUS.get(type(error), 400), error.code, str(error))
        if isinstance(error, TooManyTurns | StillTakenIn | Busy):
            response["Retry-After"] = str(error.retry_seconds)
        return response
    if isinstance(error, tuple(AWAY)):
        log.warning("a server is away: %s", error)
        detail = next(text for kind, text in AWAY.items() if isinstance(error, kind))
        return _error(503, "unavailable", detail)
    if isinstance(error, RequestDataTooBig):
        return _error(413, "too_large", "The request is too large.")
    if isinstance(error, SuspiciousOperation | RecursionError):
        return _error(400, "invalid", "The request can't be read: it is malformed.")
    unshaped = exception_handler(error, context)
    if unshaped is None:
        code = faults.record(error, role="api")
        return _error(
            500, "internal", f"Something went wrong. Tell the operator: {code}", error_id=code
        )
    return _shaped(error, unshaped)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer for an address that does not exist: JSON to API clients, a page to people."""
    body = {"code": "not_found", "detail": NOT_FOUND}
    if is_openai(request.path):
        return JsonResponse(openai_error(404, body), status=404)
    if request.path.startswith("/api/"):
        return JsonResponse(body, status=404)
    return defaults.page_not_found(request, exception)


def _error(status: int, code: str, detail: str, **more: Any) -> Response:
    return Response({"code": code, "detail": detail, **more}, status=status)


def _shaped(error: Exception, response: Response) -> Response:
    """Give DRF's own errors our shape; fields that were wrong are listed by name."""
    if isinstance(error, exceptions.ValidationError):
        fields = error.detail if isinstance(error.detail, dict) else {"": error.detail}
        sentences = [
            f"{name}: {' '.join(_flat(problems))}" if name else " ".join(_flat(problems))
            for name, problems in fields.items()
        ]
        response.data = {"code": "invalid", "detail": " ".join(sentences), "fields": fields}
    elif isinstance(error, Http404):
        response.data = {"code": "not_found", "detail": NOT_FOUND}
    else:
        detail = response.data.get("detail", "")
        response.data = {"code": getattr(detail, "code", "error"), "detail": str(detail)}
    return response


def _flat(problems: Any) -> list[str]:
    if isinstance(problems, dict):
        return [f"{name}: {' '.join(_flat(inner))}" for name, inner in problems.items()]
    if isinstance(problems, list | tuple):
        return [sentence for inner in problems for sentence in _flat(inner)]
    return [str(problems)]
