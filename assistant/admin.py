"""Admin of who may come in: users, groups and keys."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from knox.models import AuthToken
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from conversations.erasure import forget
from conversations.grants import SCOPES, issue, standing
from conversations.models import Assistant, Conversation
from knowledge.identifiers import Scope
from knowledge.models import Collection

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
    """Groups of users that share permissions."""


class KeyForm(forms.Form):
    """What a new key is to be like."""

    name = forms.CharField(
        max_length=150,
        widget=UnfoldAdminTextInputWidget,
        help_text="Who it is for. Keys of one name share their conversations.",
    )
    scopes = forms.MultipleChoiceField(
        choices=[(each, each) for each in SCOPES],
        initial=[Scope.CHAT],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="chat: ask. documents: take documents in, read and delete them. admin: see "
        "queues and usage, and with chat what everybody asked.",
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
    days = forms.IntegerField(
        required=False,
        label="Expires after",
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Days. Empty: never.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = Collection.objects.order_by("name").values_list("name", flat=True)
        offered = self.fields["collections"]
        if isinstance(offered, forms.MultipleChoiceField):
            offered.choices = [(name, name) for name in names]


@admin.register(AuthToken)
class KeyAdmin(ModelAdmin):
    """Keys: made, shown once, seen by how they begin, and revoked by deleting them."""

    list_display = ("token_key", "user", "may", "reaches", "created", "expiry", "last_used")
    list_select_related = ("user", "grant__assistant")
    search_fields = ("user__username", "token_key")
    fields = list_display
    ordering = ("-created",)

    @display(description="May")
    def may(self, token: AuthToken) -> str:
        """Its scopes."""
        return standing(token.grant)["may"]

    @display(description="Reaches")
    def reaches(self, token: AuthToken) -> str:
        """Its assistant and its collections, if it is bound to any."""
        return standing(token.grant)["reaches"]

    @display(description="Last use", ordering="grant__last_used")
    def last_used(self, token: AuthToken) -> datetime | None:
        """When it was used last, to the minute."""
        return token.grant.last_used

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody: who asks for something else gets another key."""
        return False

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Make a key and show it in the answer, which nothing keeps."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form, key = KeyForm(request.POST or None), ""
        if request.method == "POST" and form.is_valid():
            try:
                _, key = issue(**form.cleaned_data)
            except ValidationError as error:
                form.add_error(None, error)
        context = self.admin_site.each_context(request) | {
            "title": "Make a key",
            "opts": self.opts,
            "form": form,
            "key": key,
        }
        response = TemplateResponse(request, "conversations/key.html", context)
        response["Cache-Control"] = "no-store"
        return response
