"""URLs: every address Docent answers at."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from agents import admin as operations
from agents import api
from agents import connection_admin as connect
from assistant import health

admin.autodiscover()

handler400 = "assistant.api.malformed"
handler404 = "assistant.api.not_found"
handler500 = "assistant.api.failed"

urlpatterns = [
    path("", include("conversations.urls")),
    path("api/", include("knowledge.urls")),
    path("api/admin/", include("agents.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("api/admin/queues/", api.QueuesView.as_view(), name="queues"),
    path("admin/queues/", admin.site.admin_view(operations.queues_page), name="admin-queues"),
    path("admin/models/", admin.site.admin_view(connect.connection_page), name="admin-models"),
    path(
        "admin/models/listed/",
        admin.site.admin_view(connect.listed_models),
        name="admin-models-listed",
    ),
    path("admin/", admin.site.urls),
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("metrics", health.metrics),
]
