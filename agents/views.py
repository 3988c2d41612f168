"""Views: what models were asked and what it cost, for staff."""

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.serializers import UsageFigures, UsageQuery
from agents.usage import figures


class UsageView(APIView):
    """Usage of language models: calls, tokens, cost and time."""

    permission_classes = (IsAdminUser,)

    @extend_schema(parameters=[UsageQuery], responses=UsageFigures)
    def get(self, request: Request) -> Response:
        """Return the figures between two days, by day, role, model or owner."""
        query = UsageQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        return Response(UsageFigures(figures(**query.validated_data)).data)
