"""Sent: what requests hold, taken exactly as the schema says it, and how lists are paged.

DRF takes more than a schema can say: 0 and "yes" for false and true, numbers for texts, and what
is empty in a query as if it were not there.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.http import QueryDict
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

LANGUAGE_TAG = r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*\Z"
ANYTHING = re.compile(r".*", re.DOTALL)
# Kind of field → the type of its value in JSON, and how it is written, also in a query.
KINDS: dict[type[serializers.Field], tuple[type, re.Pattern[str]]] = {
    serializers.BooleanField: (bool, re.compile("true|false|0|1")),
    serializers.IntegerField: (int, re.compile(r"-?\d{1,20}", re.ASCII)),
    serializers.CharField: (str, ANYTHING),
    serializers.ChoiceField: (str, ANYTHING),
    serializers.DateTimeField: (str, re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d.*", re.ASCII)),
    serializers.DateField: (str, re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)),
    serializers.UUIDField: (
        str,
        re.compile(r"[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}", re.IGNORECASE | re.ASCII),
    ),
}
NOT_BLANK = r"\S"
USUAL_SIZE, LARGEST_SIZE = 50, 200
LAST_PAGE = 2**31 - 1


# Of the names that nobody knows, so many are told, and so much of each.
UNKNOWN_TOLD, NAME_TOLD = 5, 40


class Sent(serializers.Serializer[Any]):
    """A body or a query; each value has to be of the kind that the schema says.

    A name that is not known is refused: what is misspelt would silently do nothing.
    """

    takes_more = False

    @classmethod
    def read(cls, data: Any) -> dict[str, Any]:
        """Return what was sent, read. Raises ValidationError by field."""
        sent = cls(data=data)
        sent.is_valid(raise_exception=True)
        values: dict[str, Any] = sent.validated_data
        return values

    def get_fields(self) -> dict[str, Any]:
        """Return the fields; texts are taken as they are sent, spaces around them included."""
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            text = getattr(field, "child", field)
            if isinstance(text, serializers.CharField):
                text.trim_whitespace = False
        return fields

    def to_internal_value(self, data: Any) -> Any:
        """Return what was sent, read. Raises ValidationError by field."""
        if not isinstance(data, Mapping):
            return super().to_internal_value(data)
        if not self.takes_more:
            self._refuse_unknown(data.keys() - self.fields.keys())
        is_form = isinstance(data, QueryDict)
        values = self._of_form(data) if is_form else dict(data)
        problems: dict[str, Any] = {}
        for name in self.fields.keys() & values.keys():
            try:
                refuse_other_kinds(self.fields[name], values[name], is_form=is_form)
            except ValidationError as error:
                problems[name] = error.detail
        if problems:
            raise ValidationError(problems)
        return super().to_internal_value(values)

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        told = f"This is not known here; these are: {', '.join(sorted(self.fields))}."
        if unknown := sorted(names)[:UNKNOWN_TOLD]:
            raise ValidationError({name[:NAME_TOLD]: [told] for name in unknown})

    def _of_form(self, data: Any) -> dict[str, Any]:
        """Return a form or a query as if it were JSON: what may be repeated as a list."""
        fields = self.fields.items()
        repeated = {name for name, each in fields if isinstance(each, serializers.ListField)}
        return {name: data.getlist(name) if name in repeated else data[name] for name in data}


def refuse_other_kinds(field: "serializers.Field", value: Any, *, is_form: bool) -> None:
    """Raise ValidationError unless a value is of the kind of its field; null is the field's."""
    if value is None:
        return
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        for each in value:
            refuse_other_kinds(field.child, each, is_form=is_form)
    for kind, (type_, form) in KINDS.items():
        if not isinstance(field, kind):
            continue
        written = isinstance(value, str) and form.fullmatch(value)
        # True is an int to Python.
        is_right = written if is_form or type_ is str else type(value) is type_
        if not is_right:
            raise ValidationError(_reason(field))


def _reason(field: "serializers.Field") -> str:
    """Return DRF's own sentence for a value of another kind."""
    reasons = field.error_messages
    return str(reasons.get("invalid") or reasons["invalid_choice"]).format(
        input="This", format="YYYY-MM-DD"
    )


@extend_schema_field(
    {
        "type": "string",
        "minLength": 1,
        "maxLength": settings.MAX_QUESTION_LENGTH,
        "pattern": NOT_BLANK,
    }
)
class Question(serializers.CharField):
    """What somebody says or asks; that it is not blank is refused by who answers."""

    def __init__(self, **more: Any) -> None:
        super().__init__(trim_whitespace=False, **more)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Return the text, also a blank one."""
        is_blank = isinstance(data, str) and not data.strip()
        return data if is_blank else super().run_validation(data)


class LanguageTag(serializers.RegexField):
    """The language of documents."""

    def __init__(self, **more: Any) -> None:
        wrong: dict[str, Any] = {"invalid": "'%(value)s' is no language tag, such as en or pt-BR."}
        super().__init__(LANGUAGE_TAG, max_length=16, error_messages=wrong, **more)


class Pages(PageNumberPagination):
    """Fifty a page, at most two hundred."""

    page_size = USUAL_SIZE
    page_size_query_param = "page_size"
    max_page_size = LARGEST_SIZE

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Return the page that is asked for. Raises ValidationError, and NotFound past the last."""
        given = request.query_params.copy()
        for name in given.keys() - PagesQuery().fields.keys():
            del given[name]
        PagesQuery.read(given)
        return super().paginate_queryset(queryset, request, view)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the shape of a page; both addresses are null at an end."""
        address = {"type": ["string", "null"], "format": "uri"}
        properties = {
            "count": {"type": "integer", "description": "Of all pages together."},
            "next": address,
            "previous": address,
            "results": schema,
        }
        return {"type": "object", "required": [*properties], "properties": properties}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the parameters with their bounds."""
        largest = {"page": LAST_PAGE, "page_size": LARGEST_SIZE}
        return [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": field.help_text,
                "schema": {"type": "integer", "minimum": 1, "maximum": largest[name]},
            }
            for name, field in PagesQuery().fields.items()
        ]


class PagesQuery(Sent):
    """What may stand behind `?` of every list."""

    page = serializers.IntegerField(
        required=False, min_value=1, max_value=LAST_PAGE, help_text="Page, from 1."
    )
    page_size = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=LARGEST_SIZE,
        help_text=f"Entries a page, {USUAL_SIZE} unless told.",
    )
