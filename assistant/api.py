"""API: the one shape of errors and of pages."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response
from rest_framework.views import exception_handler

from agents import faults
from conversations.errors import ConversationError, Forgotten, NobodyListens, TurnInProgress
from knowledge.errors import KnowledgeError

STATUS: dict[type[Exception], int] = {NobodyListens: 503, TurnInProgress: 409, Forgotten: 404}


class Pages(PageNumberPagination):
    """Fifty a page, at most two hundred."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200


def explain(error: Exception, context: dict[str, Any]) -> Response:
    """Turn any exception of a view into `{code, detail, error_id?}`; nothing of ours leaks."""
    if isinstance(error, ConversationError | KnowledgeError):
        return _answer(STATUS.get(type(error), 400), _code(error), str(error))
    response = exception_handler(error, context)
    if response is None:
        code = faults.record(error, role="api")
        return _answer(
            500, "internal", f"Something went wrong. Tell the operator: {code}", error_id=code
        )
    return _shaped(error, response)


def _code(error: Exception) -> str:
    return str(getattr(error, "code", "invalid"))


def _answer(status: int, code: str, detail: str, **more: Any) -> Response:
    return Response({"code": code, "detail": detail, **more}, status=status)


def _shaped(error: Exception, response: Response) -> Response:
    """Give DRF's own errors our shape; fields that were wrong are listed by name."""
    if isinstance(error, exceptions.ValidationError):
        fields = error.detail if isinstance(error.detail, dict) else {"": error.detail}
        sentences = [
            f"{name}: {' '.join(map(str, _flat(problems)))}" if name else " ".join(_flat(problems))
            for name, problems in fields.items()
        ]
        response.data = {"code": "invalid", "detail": " ".join(sentences), "fields": fields}
    else:
        detail = response.data.get("detail", "") if isinstance(response.data, dict) else ""
        code = getattr(detail, "code", None) or _named(error)
        response.data = {"code": code, "detail": str(detail)}
    return response


def _flat(problems: Any) -> list[str]:
    if isinstance(problems, dict):
        return [f"{name}: {' '.join(_flat(inner))}" for name, inner in problems.items()]
    if isinstance(problems, list | tuple):
        return [sentence for inner in problems for sentence in _flat(inner)]
    return [str(problems)]


def _named(error: Exception) -> str:
    return {Http404: "not_found", PermissionDenied: "permission_denied"}.get(type(error), "error")
