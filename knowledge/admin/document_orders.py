"""Document orders: what staff have done with documents, one by one or many at once."""

import json
from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from knowledge import upkeep
from knowledge.ingestion.corrections import UnusableEdit, edit
from knowledge.ingestion.jobs import enqueue
from knowledge.ingestion.plan import reingest, reingest_all
from knowledge.models import Collection, Document
from knowledge.read_only_admin import RecordAdmin

# Edits are made while the browser waits, each in a few milliseconds.
MOST_AT_ONCE = 500
LIMITS = {"title": 500, "audience": 100, "description": 5000}  # characters
EXPORTED = (
    "source",
    "title",
    "crumbs",
    "description",
    "summary",
    "keypoints",
    "keywords",
    "audience",
    "language",
    "content",
)


class TargetForm(forms.Form):
    """Where documents are to go."""

    target = forms.ModelChoiceField(
        Collection.objects.all(), to_field_name="name", label="Move them to"
    )


class AudienceForm(forms.Form):
    """Whom documents are to be for."""

    audience = forms.CharField(
        max_length=100,
        required=False,
        label="They are for",
        help_text="As clients name it; empty: for everybody.",
    )


class DocumentOrders(RecordAdmin):
    """The part of the documents' admin that changes something."""

    def get_urls(self) -> list[URLPattern]:
        """Add the addresses of the buttons of one document."""
        guarded = self.admin_site.admin_view
        views = {"reingest": self.reingest_view, "edit": self.edit_view, "move": self.move_view}
        return [
            *(
                path(
                    f"<path:object_id>/{name}/",
                    guarded(view),
                    name=f"knowledge_document_{name}",
                )
                for name, view in views.items()
            ),
            *super().get_urls(),
        ]

    def reingest_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Queue a job for the document and show it."""
        if request.method != "POST" or not self.has_add_permission(request):
            raise PermissionDenied
        job = reingest(get_object_or_404(Document, pk=object_id))
        enqueue(job)
        return HttpResponseRedirect(reverse("admin:knowledge_ingest_change", args=[job.pk]))

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Write over what the document's file says of itself."""
        if request.method != "POST" or not self.has_order_permission(request):
            raise PermissionDenied
        document = get_object_or_404(Document, pk=object_id)
        values = {
            name: request.POST[name][:most] for name, most in LIMITS.items() if name in request.POST
        }
        try:
            job = edit(document, values)
        except UnusableEdit as error:
            messages.error(request, str(error))
        else:
            if job is not None:
                enqueue(job)
            later = " It is found by its new title in a moment." if job else ""
            messages.success(request, f"Saved. An ingest of the same words leaves it so.{later}")
        return HttpResponseRedirect(reverse("admin:knowledge_document_change", args=[object_id]))

    def move_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Have the document moved."""
        if request.method != "POST" or not self.has_order_permission(request):
            raise PermissionDenied
        get_object_or_404(Document, pk=object_id)
        form = TargetForm(request.POST)
        if not form.is_valid():
            messages.error(request, "Choose the collection it is to go to.")
            page = reverse("admin:knowledge_document_change", args=[object_id])
            return HttpResponseRedirect(page)
        return self._moved(
            request, Document.objects.filter(pk=object_id), form.cleaned_data["target"]
        )

    def _moved(
        self, request: HttpRequest, documents: QuerySet[Document], target: Collection
    ) -> HttpResponse:
        jobs = upkeep.plan_move(documents.only("pk", "collection_id"), target)
        for job in jobs:
            enqueue(job)
        if not jobs:
            messages.warning(request, f"All of them are in {target} already.")
        if len(jobs) == 1:
            page = reverse("admin:knowledge_ingest_change", args=[jobs[0].pk])
            return HttpResponseRedirect(page)
        return HttpResponseRedirect(reverse("admin:knowledge_ingest_changelist"))

    @admin.action(description="Take in again", permissions=["add"])
    def take_in_anew(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Queue a job for the chosen documents of each collection."""
        documents = list(queryset.select_related("collection"))
        for job in reingest_all(documents):
            enqueue(job)
        count = f"{len(documents)} document{'' if len(documents) == 1 else 's'}"
        messages.success(
            request, f"{count} to be taken in again. How far they are is under Ingests."
        )

    @admin.action(description="Move to another collection", permissions=["order"])
    def move_chosen(
        self, request: HttpRequest, queryset: QuerySet[Document]
    ) -> HttpResponse | None:
        """Ask where to, then have them moved."""
        form = TargetForm(request.POST if "confirmed" in request.POST else None)
        if form.is_valid():
            return self._moved(request, chosen(queryset), form.cleaned_data["target"])
        return self._ask(request, queryset, form, "Move documents", "Move")

    @admin.action(description="Set audience", permissions=["order"])
    def set_audience(
        self, request: HttpRequest, queryset: QuerySet[Document]
    ) -> HttpResponse | None:
        """Ask whom they are for, then write that over what their files say."""
        count = queryset.count()
        if count > MOST_AT_ONCE:
            messages.error(request, f"{count:,} are chosen; choose at most {MOST_AT_ONCE}.")
            return None
        form = AudienceForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._ask(request, queryset, form, "Set the audience", "Set audience")
        for document in chosen(queryset).select_related("collection"):
            edit(document, {"audience": form.cleaned_data["audience"]})
        messages.success(request, f"The audience of {count} document{'' if count == 1 else 's'} "
                         "is set.")  # fmt: skip
        return None

    @admin.action(description="Export as JSON lines", permissions=["view"])
    def export_chosen(self, request: HttpRequest, queryset: QuerySet[Document]) -> HttpResponse:
        """Send them as a file that can be taken in elsewhere."""
        response = StreamingHttpResponse(
            lines(chosen(queryset)), content_type="application/x-ndjson"
        )
        response["Content-Disposition"] = 'attachment; filename="documents.jsonl"'
        return response  # type: ignore[return-value]  # as Django's own annotation of actions

    def _ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[Document],
        form: forms.Form,
        title: str,
        button: str,
    ) -> HttpResponse:
        """Ask for what an action needs to know."""
        kept = ("action", "select_across", "index")
        context = self.admin_site.each_context(request) | {
            "title": title,
            "opts": self.opts,
            "form": form,
            "button": button,
            "documents": queryset[:20],
            "count": queryset.count(),
            "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "kept": [(name, request.POST.get(name, "")) for name in kept],
        }
        return TemplateResponse(request, "knowledge/chosen.html", context)

    def has_order_permission(self, request: HttpRequest) -> bool:
        """Whoever may change documents: their rows are no form, and nobody else's."""
        return request.user.has_perm("knowledge.change_document")


def chosen(queryset: QuerySet[Document]) -> QuerySet[Document]:
    """Return the chosen documents without what the list adds to them."""
    return Document.objects.filter(pk__in=queryset.order_by().values("pk"))


def lines(documents: QuerySet[Document]) -> Iterator[str]:
    """Yield documents in the structure that ingest reads, a line each."""
    for document in documents.iterator(chunk_size=20):
        values: dict[str, Any] = {name: getattr(document, name) for name in EXPORTED}
        values["version"] = document.edition
        values["last_updated"] = document.last_updated and document.last_updated.isoformat()
        said = {name: value for name, value in values.items() if value}
        yield json.dumps(said, ensure_ascii=False) + "\n"
