"""OpenAI errors: whose errors have which shape; below /v1 it is that of OpenAI's API."""

from typing import Any

from pydantic import BaseModel

PREFIX = "/v1/"
# Of ours where clients of OpenAI know another code.
CODES = {
    "not_authenticated": "invalid_api_key",
    "authentication_failed": "invalid_api_key",
    "too_many_turns": "rate_limit_exceeded",
    "throttled": "rate_limit_exceeded",
    "busy": "rate_limit_exceeded",
}
# What of a request it is about, where the error itself doesn't know.
PARAMS = {"unusable_text": "messages", "model_not_found": "model"}
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ErrorBody(BaseModel):
    """What was wrong."""

    message: str
    type: str
    param: str | None
    code: str | None
    error_id: str | None = None


class OpenAIError(BaseModel):
    """Every error below /v1."""

    error: ErrorBody


def is_api(path: str) -> bool:
    """Whether programs ask at this path, which understand errors as JSON."""
    return f"{path}/".startswith(("/api/", "/mcp/")) or is_openai(path)


def is_openai(path: str) -> bool:
    """Whether who asks at this path expects the errors of OpenAI."""
    return path.startswith(PREFIX) or path == PREFIX.rstrip("/")


def shaped(path: str, status: int, body: dict[str, Any]) -> dict[str, Any]:
    """Return an error of ours, `{code, detail, fields?, error_id?}`, in the shape of its path."""
    return openai_error(status, body) if is_openai(path) else body


def openai_error(status: int, body: dict[str, Any]) -> dict[str, Any]:
    """Return an error of ours, `{code, detail, fields?, error_id?}`, in the shape of OpenAI's.

    `param` is the first field that was wrong; `error_id` is added where there is one.
    """
    code = str(body["code"])
    usual = "server_error" if status >= 500 else "invalid_request_error"
    error = {
        "message": body["detail"],
        "type": TYPES.get(status, usual),
        "param": next(iter(body.get("fields") or ()), "") or PARAMS.get(code),
        "code": CODES.get(code, code),
    }
    return {"error": error | {name: body[name] for name in ("error_id",) if body.get(name)}}
