"""OpenAPI: what the schema says beyond the views: names, how keys are sent, and every refusal.

All of it follows from what a view is, so that it holds for those to come.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from drf_spectacular.contrib.pydantic import PydanticExtension
from drf_spectacular.drainage import warn
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation

from conversations.openai_errors import OpenAIError, is_openai, openai_error

NOT_YOURS = "There is nothing here under that address, or it is not yours."
# Status → code and detail of an example.
REFUSALS = {
    400: ("invalid", "limit: Ensure this value is less than or equal to 50."),
    401: ("authentication_failed", "This key is not known here, or it was revoked."),
    403: ("permission_denied", "This needs the scope documents, which you do not have."),
    404: ("not_found", NOT_YOURS),
    406: ("not_acceptable", "Could not satisfy the request Accept header."),
    409: ("turn_in_progress", "The last message of this conversation is still being answered."),
    413: ("too_large", "The request is too large."),
    415: ("unsupported_media_type", 'Unsupported media type "text/plain" in request.'),
    422: ("idempotency_key_reused", "Another message was sent with this Idempotency-Key."),
    429: ("throttled", "No more than 600 requests a minute with one key. Try again in 5 seconds."),
    500: ("internal", "Something went wrong. Tell the operator: RSP-2026-11-21-00042"),
    503: ("unavailable", "PostgreSQL does not answer. Try again in a moment."),
    504: ("expired", "The answer took longer than it may."),
}
# Of an operation that is refused for a reason of its own.
OWN_REFUSALS = {
    ("answer_handover", 409): ("handover", "That cannot be done with this conversation now."),
    ("run_source", 409): ("already_read", "It is being read already."),
    ("retry_ingest", 409): (
        "nothing_to_retry",
        "All of it is in, or was uploaded and has to be sent again: there is nothing to try again.",
    ),
}
WITH_FIELDS = {400: {"limit": ["Ensure this value is less than or equal to 50."]}}
WITH_ID = {500: "RSP-2026-11-21-00042"}
RETRY = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
RETRIED = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
JSON = "application/json"
# Parts of a path that say nothing of what it is about.
PREFIXES = {"api", "admin", "v1"}
WITH_BODY = {"POST", "PUT", "PATCH"}
VERBS = {"GET": "read", "POST": "create", "PUT": "replace", "PATCH": "change", "DELETE": "delete"}


class ShapeOfPydantic(PydanticExtension):  # type: ignore[no-untyped-call]
    """Shapes of pydantic; two that differ may not have one name."""

    priority = 1

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        """Return the shape; those within become components."""
        template = "#/components/schemas/{model}"
        schema = self.target.model_json_schema(ref_template=template, mode="serialization")
        for name, inner in schema.pop("$defs", {}).items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name, ResolvedComponent.SCHEMA, inner, name
            )
            if component in auto_schema.registry:
                known = auto_schema.registry[component].schema
                if known != inner:
                    warn(f"{name} is the name of two shapes.")
            auto_schema.registry.register_on_missing(component)
        return schema


class KeyScheme(KnoxTokenScheme):  # type: ignore[no-untyped-call]
    """Keys are sent as those of knox, which they are."""

    target_class = "conversations.authentication.KeyAuthentication"
    name = "key"
    priority = 1

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return how a key is sent."""
        about = "An API key: `Authorization: Bearer <key>`."
        return {"type": "http", "scheme": "bearer", "description": about}


class RefusalSerializer(serializers.Serializer[Any]):
    """Why a request was not answered."""

    code = serializers.CharField(help_text="For programs.")
    detail = serializers.CharField(help_text="For people.")
    fields = serializers.DictField(  # type: ignore[assignment]  # a field of that name
        required=False, help_text="What is wrong with each field, if that is the reason."
    )
    error_id = serializers.CharField(
        required=False, help_text="By which an operator finds the error, if there was one."
    )


class Schema(AutoSchema):
    """Names each operation, and adds the refusals that any of its kind can come to."""

    def get_operation_id(self) -> str:
        """Return a name that generated clients can give to a method, such as `list_documents`.

        A POST without a body is named by its path: `cancel_turn`.
        """
        nouns = self._nouns()
        one = [noun.removesuffix("s") for noun in nouns]
        if self.method == "POST" and not self.get_request_serializer():
            return "_".join([one[-1], *one[:-1]])
        if self._is_list_view():
            return "_".join(["list", *one[:-1], nouns[-1]])
        last = one if self.path.rstrip("/").endswith("}") or self.method == "POST" else nouns
        return "_".join([VERBS[self.method], *one[:-1], last[-1]])

    def get_tags(self) -> list[str]:
        """Return what it is about; all of OpenAI's API is one thing."""
        return ["openai"] if is_openai(self.path) else self._nouns()[:1]

    def _nouns(self) -> list[str]:
        parts = [part for part in self.path.split("/") if part and "{" not in part]
        return [part for part in parts if part not in PREFIXES]

    def _get_format_parameters(self) -> list[Any]:
        # What comes is said by Accept.
        return []

    def _get_serializer_name(self, *args: Any, **kwargs: Any) -> str:
        name: str = super()._get_serializer_name(*args, **kwargs)
        return name.replace("RequestRequest", "Request")

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        """Answers have all their fields but those that say they may be left out."""
        mapped: dict[str, Any] = super()._map_basic_serializer(  # type: ignore[no-untyped-call]
            serializer, direction
        )
        if direction == "request" and not getattr(serializer, "takes_more", True):
            mapped["additionalProperties"] = False
        if direction == "response" and mapped.get("properties"):
            declared = getattr(serializer, "_declared_fields", {})
            optional = {
                name for name, each in declared.items() if not (each.required or each.read_only)
            }
            mapped["required"] = sorted(mapped["properties"].keys() - optional)
        return mapped

    def _get_response_bodies(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(*args, **kwargs)
        told = {int(status) for status in bodies if status >= "4"}
        bodies |= {str(status): self._refusal(status) for status in {*self._refusals(), *told}}
        for status, body in bodies.items():
            body["description"] = body.get("description") or HTTPStatus(int(status)).phrase
        return dict(sorted(bodies.items()))

    def _refusals(self) -> Iterator[int]:
        """Yield statuses by what is asked: what is sent can be wrong, what is named be away."""
        sent = {(each["in"], each["name"]) for each in self._get_parameters()}
        named = {name for _, name in sent}
        yield from (401, 403, 429, 500, 503)
        if self.method in WITH_BODY or any(where != "path" for where, _ in sent):
            yield 400
        if "{" in self.path or self.method in WITH_BODY or {"collection", "page"} & named:
            yield 404
        if issubclass(self.view.content_negotiation_class, DefaultContentNegotiation):
            yield 406
        if self.method in WITH_BODY and self.get_request_serializer():
            yield from (413, 415)
        if ("header", "Idempotency-Key") in sent:
            yield from (409, 422)

    def _refusal(self, status: int) -> dict[str, Any]:
        name = self.get_operation_id()
        code, detail = OWN_REFUSALS.get((name, status)) or REFUSALS[status]
        value: dict[str, Any] = {"code": code, "detail": detail}
        shape: Any = RefusalSerializer
        if status in WITH_FIELDS:
            value["fields"] = WITH_FIELDS[status]
        if status in WITH_ID:
            value["error_id"] = WITH_ID[status]
        if is_openai(self.path):
            shape, value = OpenAIError, openai_error(status, value)
        response: dict[str, Any] = self._get_response_for_code(  # type: ignore[no-untyped-call]
            shape, str(status), [JSON]
        )
        response["content"][JSON]["examples"] = {"Refused": {"value": value}}
        return response | ({"headers": RETRY} if status in RETRIED else {})
