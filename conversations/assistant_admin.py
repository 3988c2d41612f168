"""Admin of the assistants: a form that says what is wrong, and files in both directions."""

from io import BytesIO
from typing import Any
from zipfile import ZipFile

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from conversations.assistant_file import MOST_BYTES, UnusableFile, exported, parsed, store
from conversations.assistants import MODEL_SETTINGS, Assistant
from knowledge.models import Collection

FIELDSETS: dict[str, tuple[str, ...]] = {
    "Who it is": ("name", "title", "greeting", "tone", "languages"),
    "What it is for": ("domain_name", "domain_scope", "strictness"),
    "What it answers from": ("collections", "audience"),
    "How it works": ("routes", "models"),
    "People behind it": ("contact", "opening_hours"),
}
HELP = {
    "name": "By which it is chosen: a-z, 0-9, - and _. It stays.",
    "title": "What people see.",
    "greeting": "What a greeting is answered with, and what the page begins with.",
    "tone": "How it writes, in a sentence or two. Only what models write has a tone.",
    "domain_name": "The product or organisation in a few words. Empty: DOMAIN_NAME.",
    "domain_scope": "Which questions are welcome, in a sentence; what is far from it is declined. "
    "Empty: DOMAIN_SCOPE.",
    "strictness": "How little makes a question suspected. Empty: GUARDRAILS_STRICTNESS.",
    "audience": "Answers from documents for these people, and those for everybody, only.",
    "contact": "How people are reached. Empty: SUPPORT_CONTACT.",
    "opening_hours": "When people are there: mon-fri 09:00-17:00 Europe/Warsaw; sat 10:00-14:00 "
    "Europe/Warsaw.",
}
LONG = ("greeting", "tone", "domain_scope")


class ModelsField(forms.CharField):
    """Settings of models, one a line: RESPONSE_MODEL=model@provider."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        """Return the settings as lines."""
        if not isinstance(value, dict):
            return value
        return "\n".join(f"{setting}={model}" for setting, model in value.items())

    def clean(self, value: Any) -> dict[str, str]:
        """Return the settings; the assistant checks them."""
        lines = (super().clean(value) or "").splitlines()
        pairs = (line.partition("=") for line in lines if line.strip())
        return {setting.strip(): model.strip() for setting, _, model in pairs}


class CodesField(forms.CharField):
    """A list of codes with commas between them."""

    widget = UnfoldAdminTextInputWidget

    def prepare_value(self, value: Any) -> Any:
        """Return the codes in one line."""
        return ", ".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        """Return each code once, in order."""
        codes = (code.strip().lower() for code in (super().clean(value) or "").split(","))
        return list(dict.fromkeys(filter(None, codes)))


class AssistantForm(forms.ModelForm):
    """An assistant; what it must be like, it says itself."""

    collections = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What it answers from, and nothing else. None: every collection but those that "
        "are only searched by name.",
    )
    routes = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Of those that ROUTES opens. None: all of them.",
    )
    models = ModelsField(
        required=False,
        help_text=f"One a line, as the settings: GEN_MODEL=gpt-4o-mini@openai. With none, a role "
        f"asks no model. There are: {', '.join(MODEL_SETTINGS)}.",
    )
    languages = CodesField(
        required=False,
        help_text="Codes of those it answers in, such as en, pl. Who writes in another one is "
        "answered in the first. Empty: everybody in their own.",
    )

    class Meta:
        model = Assistant
        fields = tuple(name for names in FIELDSETS.values() for name in names)
        help_texts = HELP
        widgets = dict.fromkeys(LONG, UnfoldAdminTextareaWidget)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = list(Collection.objects.values_list("name", flat=True))
        self._offer("collections", names)
        self._offer("routes", settings.ROUTES)

    def _offer(self, name: str, choices: list[str]) -> None:
        """Offer what there is, and what is chosen and gone: it does not go unseen.

        Without its last collection an assistant would answer from all of them.
        """
        gone = [each for each in getattr(self.instance, name) if each not in choices]
        field = self.fields[name]
        if isinstance(field, forms.MultipleChoiceField):
            field.choices = [(each, each) for each in choices] + [
                (each, f"{each} (is not there)") for each in gone
            ]


@admin.register(Assistant)
class AssistantAdmin(ModelAdmin):
    """Assistants: made, changed, and carried as files."""

    form = AssistantForm
    fieldsets = tuple((title, {"fields": names}) for title, names in FIELDSETS.items())
    list_display = ("name", "title", "answers_from", "keys", "updated")
    list_before_template = "conversations/assistant_tasks.html"  # type: ignore[assignment]
    search_fields = ("name", "title", "domain_name", "domain_scope")
    actions = ("export_files",)

    def get_urls(self) -> list[URLPattern]:
        """Add the page that takes a file in."""
        guarded = self.admin_site.admin_view(self.import_view)
        name = "conversations_assistant_import"
        return [path("import/", guarded, name=name), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Assistant]:
        """Assistants with the number of their keys."""
        assistants: QuerySet[Assistant] = super().get_queryset(request)
        return assistants.annotate(key_count=Count("grants"))

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """The name stays: conversations know their assistant by it."""
        return ("name",) if obj else ()

    @display(description="Answers from")
    def answers_from(self, assistant: Assistant) -> str:
        """Its collections."""
        return ", ".join(assistant.collections) or "every collection"

    @display(description="Keys", ordering="key_count")
    def keys(self, assistant: Any) -> int:
        """Number of keys that reach nothing but it."""
        return int(assistant.key_count)

    @admin.action(description="Export as files")
    def export_files(self, request: HttpRequest, queryset: QuerySet[Assistant]) -> HttpResponse:
        """Send one assistant as a TOML file, several in a zip."""
        files = {f"{each.name}.toml": exported(each) for each in queryset}
        if len(files) == 1:
            ((name, text),) = files.items()
            return _file(name, "application/toml", text.encode())
        archive = BytesIO()
        with ZipFile(archive, "w") as zipped:
            for name, text in files.items():
                zipped.writestr(name, text)
        return _file("assistants.zip", "application/zip", archive.getvalue())

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Show where a file is chosen; make or change the assistant that it describes."""
        if not (self.has_add_permission(request) and self.has_change_permission(request)):
            raise PermissionDenied
        error = ""
        if request.method == "POST":
            try:
                assistant, outcome = _stored(request)
            except UnusableFile as unusable:
                error = str(unusable)
            else:
                messages.success(request, f"{assistant.name}: {outcome}.")
                page = reverse("admin:conversations_assistant_change", args=[assistant.pk])
                return HttpResponseRedirect(page)
        context = self.admin_site.each_context(request) | {
            "title": "Import an assistant",
            "opts": self.opts,
            "error": error,
        }
        status = 400 if error else 200
        return TemplateResponse(
            request, "conversations/assistant_import.html", context, status=status
        )


@transaction.atomic
def _stored(request: HttpRequest) -> tuple[Assistant, str]:
    file = request.FILES.get("file")
    if file is None:
        raise UnusableFile("Choose a file.")
    return store(parsed(file.read(MOST_BYTES + 1)))


def _file(name: str, kind: str, content: bytes) -> HttpResponse:
    response = HttpResponse(content, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
