"""Views: the queues for staff, and the metrics for Prometheus."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.watching.metrics import exposition
from agents.watching.overview import overview
from agents.watching.serializers import OverviewSerializer


class QueuesView(APIView):
    """Queues: what waits, who listens, and how long the work takes."""

    permission_classes = (IsAdminUser,)

    @extend_schema(responses=OverviewSerializer)
    def get(self, request: Request) -> Response:
        """Return the turns under way and every queue as it is now."""
        return Response(OverviewSerializer(overview()).data)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus; no key needed, and nothing in it of what was said."""
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
