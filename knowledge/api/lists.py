"""Lists: what can be chosen of rows by a query, read page by page."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from knowledge.api.sent import PagesQuery

Row = TypeVar("Row", bound=Model)


class ListView(ListAPIView[Row]):
    """A list of rows, of which `query_form` lets choose."""

    query_form: type[PagesQuery] = PagesQuery
    # Name in the query → what of a row it is compared with.
    chosen_by: dict[str, str] = {}
    # What the query says.
    query: dict[str, Any]

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one page. Raises ValidationError."""
        self.query = self.query_form.read(request.query_params)
        return super().list(request, *args, **kwargs)

    def choose(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Return those that meet what the query says by the names in `chosen_by`."""
        named = self.chosen_by.items()
        return rows.filter(**{each: self.query[name] for name, each in named if name in self.query})
