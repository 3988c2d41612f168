"""URLs of the documents, below `/api/`."""

from django.urls import path

from knowledge.views import collections, documents, ingests, parts, search

urlpatterns = [
    path("documents/", documents.DocumentsView.as_view(), name="documents"),
    path("documents/<slug:pk>/", documents.DocumentView.as_view(), name="document"),
    path("documents/<slug:pk>/reingest/", documents.ReingestView.as_view(), name="reingest"),
    path("documents/<slug:pk>/chunks/", parts.ChunksView.as_view(), name="document-chunks"),
    path("documents/<slug:pk>/versions/", parts.VersionsView.as_view(), name="document-versions"),
    path(
        "documents/<slug:pk>/versions/<int:number>/",
        parts.VersionView.as_view(),
        name="document-version",
    ),
    path("documents/<slug:pk>/answers/", parts.AnswersView.as_view(), name="document-answers"),
    path("ingests/", ingests.IngestsView.as_view(), name="ingests"),
    path("ingests/<uuid:ingest_id>/", ingests.IngestView.as_view(), name="ingest"),
    path("ingests/<uuid:ingest_id>/cancel/", ingests.CancelView.as_view(), name="ingest-cancel"),
    path("ingests/<uuid:ingest_id>/retry/", ingests.RetryView.as_view(), name="ingest-retry"),
    path("search/", search.SearchView.as_view(), name="search"),
    path("collections/", collections.CollectionsView.as_view(), name="collections"),
    path("receipts/", collections.ReceiptsView.as_view(), name="receipts"),
    path("receipts/<uuid:pk>/", collections.ReceiptView.as_view(), name="receipt"),
]
