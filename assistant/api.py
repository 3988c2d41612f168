"""API: the one shape of errors."""

import logging
import sys
from http import HTTPStatus
from typing import Any

from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.middleware.common import CommonMiddleware
from django.urls import is_valid_path
from django.utils.deprecation import MiddlewareMixin
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
    RefusedHandover,
    StillTakenIn,
    TooManyTurns,
    TurnInProgress,
    UnknownAssistant,
    UnknownMessage,
    UnknownModel,
)
from conversations.openai_errors import is_api, shaped
from knowledge.errors import KnowledgeError, NameTaken, UnknownCollection
from knowledge.ingestion.jobs import AlreadyRead, NothingToRetry
from knowledge.ingestion.schedule import KnownSource

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
    NameTaken: 409,
    NothingToRead: 503,
    UnknownModel: 404,
    UnknownMessage: 404,
    NothingToRetry: 409,
    AlreadyRead: 409,
    KnownSource: 409,
    RefusedHandover: 409,
    EmbeddingAway: 503,
}
AWAY = {
    OperationalError: "PostgreSQL does not answer. Try again in a moment.",
    InterfaceError: "PostgreSQL does not answer. Try again in a moment.",
    RedisError: "Redis does not answer. Try again in a moment.",
}
_MALFORMED = (400, "invalid", "The request can't be read: it is malformed.")
# The first that fits holds.
UNREADABLE: dict[type[Exception], tuple[int, str, str]] = {
    RequestDataTooBig: (413, "too_large", "The request is too large."),
    DisallowedHost: (400, "unknown_host", "This host is not served here: see ALLOWED_HOSTS."),
    SuspiciousOperation: _MALFORMED,
    BadRequest: _MALFORMED,
    MultiPartParserError: _MALFORMED,
    RecursionError: _MALFORMED,
}
# Headers of an error that hold in any shape.
KEPT = ("Allow", "Retry-After", "WWW-Authenticate", "Vary")
NOT_FOUND = "There is nothing here under that address, or it is not yours."


def explain(error: Exception, context: dict[str, Any]) -> Response:
    """Turn any exception of a view into `{code, detail, error_id?}`; nothing of ours leaks.

    Below /v1 in the shape of OpenAI's API.
    """
    response = _explained(error, context)
    response.data = shaped(context["request"].path, response.status_code, response.data)
    return response


def _explained(error: Exception, context: dict[str, Any]) -> Response:
    if isinstance(error, UnknownCollection):
        # Nobody is told of others by their names.
        return _error(404, error.code, error.here)
    if isinstance(error, ConversationError | KnowledgeError):
        response = _error(STATUS.get(type(error), 400), error.code, str(error))
        if isinstance(error, TooManyTurns | StillTakenIn | Busy | NobodyListens):
            response["Retry-After"] = str(error.retry_seconds)
        return response
    if isinstance(error, tuple(AWAY)):
        log.warning("a server is away: %s", error)
        detail = next(text for kind, text in AWAY.items() if isinstance(error, kind))
        return _error(503, "unavailable", detail)
    if isinstance(error, tuple(UNREADABLE)):
        return _error(*next(told for kind, told in UNREADABLE.items() if isinstance(error, kind)))
    unshaped = exception_handler(error, context)
    if unshaped is None:
        code = faults.record(error, role="api")
        return _error(
            500, "internal", f"Something went wrong. Tell the operator: {code}", error_id=code
        )
    return _shaped(error, unshaped)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer for an address that does not exist: JSON to API clients, a page to people."""
    if not is_api(request.path):
        return defaults.page_not_found(request, exception)
    detail = NOT_FOUND
    if is_valid_path(f"{request.path_info}/"):
        detail = f"Write the address with a slash at its end: {request.path}/"
    return _without_view(request, _error(404, "not_found", detail))


def malformed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer for what no view can read."""
    if not is_api(request.path):
        return defaults.bad_request(request, exception)
    return _without_view(request, _explained(exception, {}))


def failed(request: HttpRequest) -> HttpResponse:
    """Answer for a bug outside the views of the API, with the id by which it is found."""
    error = sys.exception()
    if not is_api(request.path) or not isinstance(error, Exception):
        return defaults.server_error(request)
    return _without_view(request, _explained(error, {}))


class ErrorShape(MiddlewareMixin):
    """Gives what Django and its middleware refuse by themselves the shape of the API's errors."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Replace a page that tells a program of an error."""
        status = response.status_code
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if status < HTTPStatus.BAD_REQUEST or is_json or not is_api(request.path):
            return response
        phrase = HTTPStatus(status).phrase
        told = _error(status, phrase.lower().replace(" ", "_"), f"{phrase}.")
        for name in KEPT:
            if name in response:
                told[name] = response[name]
        return _without_view(request, told)


class SlashForPages(CommonMiddleware):
    """Leads people to the address with a slash; what a program sent would be lost on the way."""

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
        """Tell whether to lead there."""
        return not is_api(request.path) and super().should_redirect_with_slash(request)


def _without_view(request: HttpRequest, told: Response) -> HttpResponse:
    body = shaped(request.path, told.status_code, told.data)
    kept = {name: told[name] for name in KEPT if name in told}
    return JsonResponse(body, status=told.status_code, headers=kept)


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
