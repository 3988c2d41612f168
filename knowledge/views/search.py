"""Search: what it finds and why, level by level."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.search import Found, search
from knowledge.serializers.search import SearchAnswer, SearchQuery


class SearchView(APIView):
    """A search without an answer."""

    permission_classes = (IsAdminUser,)

    @extend_schema(parameters=[SearchQuery], responses=SearchAnswer)
    def get(self, request: Request) -> Response:
        """Return the passages for a question, with `explain` also what was dropped and why."""
        query = SearchQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        found = looked_up(query.validated_data)
        return Response(
            {
                "passages": [asdict(passage) for passage in found.passages],
                "quality": found.quality,
                "no_context": found.no_context,
                "error": found.error,
                "stats": found.stats,
                "explain": found.explain and found.explain.as_json(),
            }
        )


def looked_up(asked: dict[str, Any]) -> Found:
    """Return what a validated query finds. Raises UnknownCollection."""
    return search(
        asked["q"],
        collections=asked["collection"],
        limit=asked.get("limit"),
        languages=[asked["language"]] if asked["language"] else (),
        audience=asked["audience"],
        explain=asked["explain"],
        reuse=True,
    )
