"""Deletion: what the admin says before it, and the receipt it gives afterwards."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from knowledge.ingestion.removal import delete
from knowledge.models import Chunk, Document

Deletion = tuple[list[str], dict[str, int], set[str], list[str]]


def deletion(of: str, count: int, documents: QuerySet[Document]) -> Deletion:
    """Return what Django's confirmation asks for: counts, as a list of chunks would be endless."""
    pages = documents.count()
    chunks = Chunk.objects.filter(document__in=documents).count()
    counts = {of: count, "documents": pages, "chunks": chunks}
    sentence = f"{pages} document{'' if pages == 1 else 's'} with {chunks} chunks and their vectors"
    return [sentence], counts, set(), []


def delete_with_receipt(request: HttpRequest, documents: QuerySet[Document], reason: str) -> None:
    """Delete the documents in the name of whoever asks, and show a link to the receipt."""
    going = list(documents.defer("content"))
    if not going:
        return
    receipt = delete(going, by=request.user.get_username(), reason=reason)
    said = '{} document{} deleted: <a class="underline" href="{}">The receipt</a>.'
    page = reverse("admin:knowledge_receipt_change", args=[receipt.pk])
    messages.success(request, format_html(said, len(going), "" if len(going) == 1 else "s", page))
