"""Golden questions: what is asked, and the documents that answer it, chosen by ticking."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from knowledge.errors import KnowledgeError
from knowledge.models import Collection, Document, GoldenQuestion
from knowledge.search import search

OFFERED = 10  # documents a search offers, and as many by their names


class SourcesField(forms.MultipleChoiceField):
    """Sources of documents; whether the collection holds them, the form says."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget

    def valid_value(self, value: str) -> bool:
        """Leave that to the form, which knows the collection."""
        return True


class GoldenQuestionForm(forms.ModelForm):
    """A question, and the documents that answer it."""

    sources = SourcesField(
        required=False,
        label="Documents that answer it",
        help_text="None ticked: no document of the collection answers it. Offered is what a search "
        "for the question finds; look for others below.",
    )
    # What was asked for in the address: what to begin with, and what else to look for.
    given: QueryDict = QueryDict()

    class Meta:
        model = GoldenQuestion
        fields = ("collection", "question", "sources")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = {**self.initial, **begun(self.given)}
        field = self.fields["sources"]
        if isinstance(field, SourcesField):
            field.choices = self._offered()

    def _offered(self) -> list[tuple[str, str]]:
        """Return the sources that are ticked, those that a search finds, and those looked for."""
        ticked = list(self.initial.get("sources") or [])
        question, home = self.initial.get("question", ""), self.initial.get("collection")
        if self.is_bound and isinstance(self.data, QueryDict):
            ticked += self.data.getlist("sources")
            question, home = self.data.get("question", ""), self.data.get("collection")
        collection = Collection.objects.filter(pk=home).first() if home else None
        found = offered(collection, question, self.given.get("find", "")) if collection else {}
        titles = {source: found.get(source, source) for source in ticked}
        return list({**titles, **found}.items())

    def clean(self) -> dict[str, Any]:
        """Refuse sources that the collection does not hold, naming them."""
        cleaned: dict[str, Any] = super().clean() or {}
        collection, sources = cleaned.get("collection"), cleaned.get("sources", [])
        if collection is None:
            return cleaned
        known = collection.documents.filter(source__in=sources).values_list("source", flat=True)
        if unknown := set(sources) - set(known):
            self.add_error(
                "sources",
                f"{collection} holds no document with the source {', '.join(sorted(unknown))}.",
            )
        return cleaned


def begun(given: QueryDict) -> dict[str, Any]:
    """Return what a form begins with: a question, and documents of one collection."""
    chosen = Document.objects.filter(pk__in=given.getlist("document")).select_related("collection")
    documents = list(chosen)
    homes = Collection.objects.filter(name=given.get("collection", ""))
    home = homes.first() or (documents[0].collection if documents else None)
    own = [each.source for each in documents if home and each.collection_id == home.pk]
    values: dict[str, Any] = {"question": given.get("question"), "collection": home and home.pk}
    if "sources" in given or own:
        values["sources"] = list(filter(None, [*given.getlist("sources"), *own]))
    return {name: value for name, value in values.items() if value is not None}


def offered(collection: Collection, question: str, find: str) -> dict[str, str]:
    """Return source → title of documents that a search finds, or whose names hold some words."""
    rows = []
    if question.strip():
        try:
            passages = search(question, collections=[collection.name], limit=OFFERED).passages
        except KnowledgeError:
            passages = ()
        rows += [(each.source, each.title) for each in passages]
    if find.strip():
        named = collection.documents.filter(Q(title__icontains=find) | Q(source__icontains=find))
        rows += list(named.values_list("source", "title")[:OFFERED])
    return {source: f"{title} ({source})" for source, title in rows}


@admin.register(GoldenQuestion)
class GoldenQuestionAdmin(ModelAdmin):
    """Golden questions: what `calibrate` and `reindex` measure a collection by."""

    form = GoldenQuestionForm
    change_form_after_template = "knowledge/golden.html"  # type: ignore[assignment]
    list_display = ("question", "collection", "answered_by")
    list_filter = (("collection", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("collection",)
    search_fields = ("question", "sources")
    fields = ("collection", "question", "sources")

    class Media:
        css = {"all": ("knowledge/records.css",)}

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the button that looks for documents."""
        view = self.admin_site.admin_view(self.find_view)
        return [path("find/", view, name="knowledge_goldenquestion_find"), *super().get_urls()]

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Let the form begin with what stands in the address."""
        form = super().get_form(request, *args, **kwargs)
        return type(form.__name__, (form,), {"given": request.GET})

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Nothing: the form reads the address itself."""
        return {}

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form again as it was filled in, with the documents that were looked for."""
        pk = request.POST.get("pk", "")
        if request.method != "POST" or not self.has_view_permission(request):
            raise PermissionDenied
        home = Collection.objects.filter(pk=request.POST.get("collection") or 0).first()
        query = QueryDict(mutable=True)
        query["question"], query["find"] = request.POST.get("question", ""), request.POST["find"]
        query["collection"] = home.name if home else ""
        query.setlist("sources", request.POST.getlist("sources") or [""])
        page = "change" if pk else "add"
        form = reverse(f"admin:knowledge_goldenquestion_{page}", args=[pk] if pk else [])
        return HttpResponseRedirect(f"{form}?{query.urlencode()}")

    @display(description="Answered by")
    def answered_by(self, question: GoldenQuestion) -> str:
        """The sources, or that there are none."""
        return ", ".join(question.sources) or "no document"
