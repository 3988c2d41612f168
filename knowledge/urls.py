"""URLs of the documents, below `/api/`."""

from django.urls import path

from knowledge import views

urlpatterns = [
    path("documents/", views.DocumentsView.as_view(), name="documents"),
    path("documents/<slug:pk>/", views.DocumentView.as_view(), name="document"),
    path("ingests/<uuid:ingest_id>/", views.IngestView.as_view(), name="ingest"),
]
