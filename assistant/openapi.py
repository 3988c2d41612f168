"""OpenAPI: what the schema says beyond the views: how keys are sent, and every refusal."""

from http import HTTPStatus
from typing import Any

from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from conversations.openai_errors import is_openai, openai_error

NOT_YOURS = "There is nothing here under that address, or it is not yours."
# Status → code and detail of an example.
REFUSALS = {
    400: ("invalid", "limit: Ensure this value is less than or equal to 50."),
    401: ("authentication_failed", "This key is not known here, or it was revoked."),
    403: ("permission_denied", "This needs the scope documents, which you do not have."),
    404: ("not_found", NOT_YOURS),
    429: ("throttled", "No more than 600 requests a minute with one key. Try again in 5 seconds."),
    503: ("unavailable", "PostgreSQL does not answer. Try again in a moment."),
}
RETRY = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}


class KeyScheme(KnoxTokenScheme):  # type: ignore[no-untyped-call]
    """Keys are sent as those of knox, which they are."""

    target_class = "conversations.authentication.KeyAuthentication"
    priority = 1


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


def _of_openai(status: int, body: dict[str, Any]) -> dict[str, Any]:
    """A refusal in the shape of OpenAI's API, with an example."""
    phrase = HTTPStatus(status).phrase
    code, detail = REFUSALS.get(status, (phrase.lower().replace(" ", "_"), f"{phrase}."))
    value = openai_error(status, {"code": code, "detail": detail})
    content = {"schema": body["content"]["application/json"]["schema"]}
    content["examples"] = {"Refused": {"value": value}}
    headers = {"headers": RETRY} if status == HTTPStatus.TOO_MANY_REQUESTS else {}
    return {"content": {"application/json": content}} | headers


class Schema(AutoSchema):
    """Adds to each operation the refusals that any of its kind can come to."""

    def _get_response_bodies(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(*args, **kwargs)
        for status in self._refusals():
            bodies.setdefault(str(status), self._refusal(status))
        if is_openai(self.path):
            for code in [code for code in bodies if code >= "4"]:
                bodies[code] |= _of_openai(int(code), bodies[code])
        return dict(sorted(bodies.items()))

    def _refusals(self) -> list[int]:
        """Statuses by what is asked: a body or a query can be wrong, what is named can be away."""
        query = {each["name"] for each in self._get_parameters() if each["in"] != "path"}
        is_read = bool(query) or self.method in {"POST", "PUT", "PATCH"}
        names_something = "{" in self.path or "collection" in query or self.method == "POST"
        return [
            *([400] if is_read else []),
            *(401, 403),
            *([404] if names_something else []),
            *(429, 503),
        ]

    def _refusal(self, status: int) -> dict[str, Any]:
        code, detail = REFUSALS[status]
        response: dict[str, Any] = self._get_response_for_code(  # type: ignore[no-untyped-call]
            RefusalSerializer, str(status), ["application/json"]
        )
        response["description"] = ""
        response["content"]["application/json"]["examples"] = {
            "Refused": {"value": {"code": code, "detail": detail}}
        }
        return response | ({"headers": RETRY} if status == 429 else {})
