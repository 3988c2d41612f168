"""URLs of the documents, below `/api/documents/`."""

from django.urls import path

from knowledge import views

urlpatterns = [
    path("", views.DocumentsView.as_view(), name="documents"),
    path("<str:pk>/", views.DocumentView.as_view(), name="document"),
]
