"""Admin of who may come in: users, groups and keys."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from knox.models import AuthToken
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from conversations.models import Conversation
from conversations.services import forget

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


@admin.register(AuthToken)
class KeyAdmin(ModelAdmin):
    """Keys: seen by how they begin and revoked by deleting them. `apikey create` makes them."""

    list_display = ("token_key", "user", "reaches", "created", "expiry")
    list_select_related = ("user", "grant__assistant")
    search_fields = ("user__username", "token_key")
    fields = ("token_key", "user", "reaches", "created", "expiry")
    ordering = ("-created",)

    @display(description="Assistant")
    def reaches(self, token: AuthToken) -> str:
        """The only assistant that it reaches, if it is bound to one."""
        return token.grant.assistant.name if hasattr(token, "grant") else "any"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: a key is shown once, on the command line."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False
