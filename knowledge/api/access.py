"""Access: what a request may do by the scopes of its key, and which documents it reaches."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from knowledge.collections import Reach
from knowledge.identifiers import Scope

EVERYTHING = Reach()


# What somebody who logged in has to be allowed in the admin to do the same here, by method; a view
# that is about other rows says it by its `rights`.
RIGHTS: dict[Scope, dict[str, str]] = {
    Scope.DOCUMENTS: {
        "GET": "knowledge.view_document",
        "POST": "knowledge.add_document",
        "DELETE": "knowledge.delete_document",
    },
    Scope.ADMIN: {
        "GET": "conversations.view_conversation",
        "POST": "conversations.change_conversation",
        "DELETE": "conversations.delete_conversation",
    },
}


class ScopePermission(BasePermission):
    """Lets in who may do what a view is for, which the view says by its `scope`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True, or raise what says which scope is missing."""
        # Forgotten by a view, it is the narrowest one.
        demand(request, getattr(view, "scope", Scope.ADMIN), getattr(view, "rights", None))
        return True


def demand(request: Request, scope: Scope, rights: Mapping[str, str] | None = None) -> None:
    """Raise NotAuthenticated without a key or login, PermissionDenied without the scope."""
    if isinstance(request.user, AnonymousUser):
        raise NotAuthenticated
    if not may(request, scope, rights):
        raise PermissionDenied(f"This needs the scope {scope}, which you do not have.")


def may(request: Request, scope: Scope, rights: Mapping[str, str] | None = None) -> bool:
    """Return whether a key has a scope, or a login of staff what RIGHTS say; anybody may chat."""
    if grant := _grant(request):
        return scope in grant.scopes
    if scope == Scope.CHAT:
        return True
    method = "GET" if request.method in SAFE_METHODS else str(request.method)
    right = (RIGHTS[scope] | dict(rights or {})).get(method, "")
    return bool(request.user.is_staff and request.user.has_perm(right))


def grantable(user: AbstractBaseUser | AnonymousUser) -> list[Scope]:
    """Return the scopes that staff may give to a key: all that a key could do, they may do."""
    return [
        scope
        for scope in Scope
        if isinstance(user, PermissionsMixin) and user.has_perms(RIGHTS.get(scope, {}).values())
    ]


def reach_of(request: Request) -> Reach:
    """Return what of the documents a request may look into."""
    grant = _grant(request)
    reach: Reach = grant.reach if grant else EVERYTHING
    return reach


def _grant(request: Request) -> Any:
    """Return the `conversations.grants.Grant` of the key; None for who logged in."""
    key: Any = request.auth
    return key.grant if key else None
