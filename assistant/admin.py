"""Admin of who may come in: users, groups and keys."""

from datetime import datetime
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.timezone import now
from knox.models import AuthToken
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from assistant.sidebar import SECTIONS, Place
from conversations.erasure import forget
from conversations.grants import Key, issue, standing
from conversations.models import Assistant, Conversation
from conversations.widget import line_to_paste
from knowledge.api.access import grantable
from knowledge.identifiers import Scope
from knowledge.models import Collection

ACTIONS = ("view", "add", "change", "delete")

for _model in (User, Group, AuthToken):
    admin.site.unregister(_model)


@admin.register(User)
class PeopleAdmin(UserAdmin, ModelAdmin):  # type: ignore[misc]  # Unfold types otherwise
    """Users: people who log in, and clients that hold a key."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the user and forget what was said to them."""
        _forget_conversations_of([obj])
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Delete users and forget what was said to them."""
        _forget_conversations_of(list(queryset))
        super().delete_queryset(request, queryset)


def _forget_conversations_of(users: list[User]) -> None:
    """Turns are bound to conversations by id alone, so that no cascade finds them."""
    for conversation in Conversation.objects.filter(owner__in=users):
        forget(conversation)


@admin.register(Group)
class RightsAdmin(GroupAdmin, ModelAdmin):  # type: ignore[misc]  # Unfold types otherwise
    """Groups of users that share permissions, and a page that sets them side by side."""

    def get_urls(self) -> list[URLPattern]:
        """Add that page."""
        page = self.admin_site.admin_view(self.rights_view)
        return [path("rights/", page, name="auth_group_rights"), *super().get_urls()]

    def rights_view(self, request: HttpRequest) -> HttpResponse:
        """Show what each group may do on each page of the sidebar."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        groups = Group.objects.order_by("name").prefetch_related("permissions__content_type")
        held = [{_label(each) for each in group.permissions.all()} for group in groups]
        context = self.admin_site.each_context(request) | {
            "title": "Who may what",
            "groups": groups,
            "sections": [
                (title, [(place, [_rights(place, have) for have in held]) for place in places])
                for title, places in SECTIONS.items()
                if title
            ],
        }
        return TemplateResponse(request, "assistant/rights.html", context)


def _label(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def _rights(place: Place, held: set[str]) -> str:
    """Return in words what is allowed on a page to who has these permissions."""
    if not place.page.endswith("_changelist"):
        return "open" if place.permission in held else ""
    app, _, kind = place.permission.partition(".view_")
    return ", ".join(word for word in ACTIONS if f"{app}.{word}_{kind}" in held)


class KeyForm(forms.Form):
    """What a new key is to be like."""

    name = forms.CharField(
        max_length=150,
        widget=UnfoldAdminTextInputWidget,
        help_text="Who it is for. Keys of one name share their conversations.",
    )
    scopes = forms.MultipleChoiceField(
        initial=[Scope.CHAT],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="chat: ask. documents: take documents in, read and delete them. admin: see "
        "queues and usage, and with chat what everybody asked. Only what you may do is offered.",
    )
    collections = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What it reaches, and nothing else. None: not bound to collections.",
    )
    assistant = forms.ModelChoiceField(
        Assistant.objects.all(),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="The only assistant that it asks, if any.",
    )
    sites = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="For a chat on pages of other sites, one a line, such as "
        "https://www.example.org. The key is then public, and good for nothing else.",
    )
    days = forms.IntegerField(
        required=False,
        label="Expires after",
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Days. Empty: never.",
    )

    def __init__(self, maker: AbstractBaseUser | AnonymousUser, data: Any) -> None:
        super().__init__(data)
        names = Collection.objects.order_by("name").values_list("name", flat=True)
        for field, offered in (("scopes", grantable(maker)), ("collections", names)):
            chosen_from = cast("forms.MultipleChoiceField", self.fields[field])
            chosen_from.choices = [(each, each) for each in offered]

    def clean_sites(self) -> list[str]:
        """Return the sites, each once."""
        return str(self.cleaned_data["sites"]).split()


@admin.register(Key)
class KeyAdmin(ModelAdmin):
    """Keys: made, shown once, seen by how they begin, and revoked by deleting them."""

    list_display = (
        "name",
        "begins",
        "may",
        "reaches",
        "limits",
        "last_used",
        "until",
        "created",
    )
    list_display_links = ("name", "begins")
    list_select_related = ("user__budget", "grant__assistant")
    search_fields = ("user__username", "token_key")
    search_help_text = "Name, or how the key begins"
    fields = (*list_display, "line")
    ordering = ("-created",)

    @display(description="Name", ordering="user__username")
    def name(self, key: Key) -> str:
        """Who it is for."""
        return key.user.get_username()

    @display(description="Begins with", ordering="token_key")
    def begins(self, key: Key) -> str:
        """What tells it from others of its name."""
        return key.token_key

    @display(description="May")
    def may(self, key: Key) -> str:
        """Its scopes."""
        return standing(key.grant)["may"]

    @display(description="Reaches")
    def reaches(self, key: Key) -> str:
        """Its assistant and its collections, if it is bound to any."""
        return standing(key.grant)["reaches"]

    @display(description="Limits")
    def limits(self, key: Key) -> str:
        """How much may be asked and spent with it."""
        budget = getattr(key.user, "budget", None)
        dollars = budget.usd_per_day if budget else settings.DAILY_BUDGET_PER_KEY
        grant = key.grant
        limits = {
            "{:,} questions a minute": grant.questions or None if grant.sites else None,
            "{:,} of a visitor": grant.questions_of_a_visitor or None if grant.sites else None,
            "{:,} requests a minute": settings.MAX_REQUESTS_PER_KEY or None,
            "{:.2f} USD a day": dollars if budget or dollars else None,
            "{:,} tokens a day": settings.DAILY_TOKENS_PER_KEY or None,
        }
        return ", ".join(text.format(most) for text, most in limits.items() if most is not None)

    @display(description="Last use", ordering="grant__last_used", empty_value="never")
    def last_used(self, key: Key) -> datetime | None:
        """When it was used last, to the minute."""
        return key.grant.last_used

    @display(description="Expires", ordering="expiry", empty_value="never")
    def until(self, key: Key) -> datetime | str | None:
        """When it ends, or that it has."""
        return "expired" if key.expiry and key.expiry < now() else key.expiry

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Call it what it is."""
        actions: dict[str, Any] = super().get_actions(request)
        return {name: (do, name, "Revoke the chosen keys") for name, (do, *_) in actions.items()}

    @display(description="Line to paste")
    def line(self, key: Key) -> str:
        """What brings the chat to the pages of its sites, if it is for any."""
        return line_to_paste(key.grant) if key.grant.sites else ""

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody: who asks for something else gets another key."""
        return False

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Make a key and show it in the answer, which nothing keeps."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form, key, line = KeyForm(request.user, request.POST or None), "", ""
        if request.method == "POST" and form.is_valid():
            try:
                grant, key = issue(**form.cleaned_data)
                line = line_to_paste(grant) if grant.sites else ""
            except ValidationError as error:
                form.add_error(None, error)
        context = self.admin_site.each_context(request) | {
            "title": "Make a key",
            "opts": self.opts,
            "form": form,
            "key": key,
            "line": line,
        }
        response = TemplateResponse(request, "conversations/key.html", context)
        response["Cache-Control"] = "no-store"
        return response
