"""URLs of the documents, below `/api/`."""

from django.urls import path

from knowledge.api import (
    collection_api,
    document_api,
    ingest_api,
    search_api,
    source_api,
    version_api,
)

urlpatterns = [
    path("documents/", document_api.DocumentsView.as_view(), name="documents"),
    path("documents/<slug:pk>/", document_api.DocumentView.as_view(), name="document"),
    path("documents/<slug:pk>/reingest/", document_api.ReingestView.as_view(), name="reingest"),
    path("documents/<slug:pk>/chunks/", document_api.ChunksView.as_view(), name="document-chunks"),
    path(
        "documents/<slug:pk>/versions/",
        version_api.VersionsView.as_view(),
        name="document-versions",
    ),
    path(
        "documents/<slug:pk>/versions/<int:number>/",
        version_api.VersionView.as_view(),
        name="document-version",
    ),
    path(
        "documents/<slug:pk>/answers/", version_api.AnswersView.as_view(), name="document-answers"
    ),
    path("ingests/", ingest_api.IngestsView.as_view(), name="ingests"),
    path("ingests/<uuid:ingest_id>/", ingest_api.IngestView.as_view(), name="ingest"),
    path("ingests/<uuid:ingest_id>/cancel/", ingest_api.CancelView.as_view(), name="ingest-cancel"),
    path("ingests/<uuid:ingest_id>/retry/", ingest_api.RetryView.as_view(), name="ingest-retry"),
    path("sources/", source_api.SourcesView.as_view(), name="sources"),
    path("sources/<uuid:source_id>/", source_api.SourceView.as_view(), name="source"),
    path("sources/<uuid:source_id>/run/", source_api.SourceRunView.as_view(), name="source-run"),
    path("search/", search_api.SearchView.as_view(), name="search"),
    path("collections/", collection_api.CollectionsView.as_view(), name="collections"),
    path("receipts/", collection_api.ReceiptsView.as_view(), name="receipts"),
    path("receipts/<uuid:pk>/", collection_api.ReceiptView.as_view(), name="receipt"),
]
