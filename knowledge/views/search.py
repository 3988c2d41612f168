"""Search: what it finds and why, level by level."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.search import Beside, Found, neighbours, search
from knowledge.serializers.search import SearchAnswer, SearchQuery


class SearchView(APIView):
    """A search without an answer."""

    permission_classes = (IsAdminUser,)

    @extend_schema(parameters=[SearchQuery], responses=SearchAnswer)
    def get(self, request: Request) -> Response:
        """Return the passages for a question, with `explain` also what was dropped and why."""
        query = SearchQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        found = looked_up(query.validated_data, reuse=f"user:{request.user.pk}/")
        most = query.validated_data["neighbours"]
        beside = neighbours((each.chunk_id for each in found.passages if most), most=most)
        return Response(
            {
                "passages": [
                    asdict(each) | asdict(beside.get(each.chunk_id, Beside()))
                    for each in found.passages
                ],
                "quality": found.quality,
                "no_context": found.no_context,
                "error": found.error,
                "stats": found.stats,
                "explain": found.explain and found.explain.as_json(),
            }
        )


def looked_up(asked: dict[str, Any], *, reuse: str = "") -> Found:
    """Return what a validated query finds (`reuse` as in `search`). Raises UnknownCollection."""
    return search(
        asked["q"],
        collections=asked["collection"],
        limit=asked.get("limit"),
        languages=[asked["language"]] if asked["language"] else (),
        audience=asked["audience"],
        explain=asked["explain"],
        reuse=reuse,
    )
