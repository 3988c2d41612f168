"""Access: what a request may do by the scopes of its key, and which documents it reaches."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from knowledge.collections import Reach
from knowledge.identifiers import Scope

EVERYTHING = Reach()


class ScopePermission(BasePermission):
    """Lets in who may do what a view is for, which the view says by its `scope`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True, or raise what says which scope is missing."""
        # Forgotten by a view, it is the narrowest one.
        demand(request, getattr(view, "scope", Scope.ADMIN))
        return True


def demand(request: Request, scope: Scope) -> None:
    """Raise NotAuthenticated without a key or login, PermissionDenied without the scope."""
    if isinstance(request.user, AnonymousUser):
        raise NotAuthenticated
    if not may(request, scope):
        raise PermissionDenied(f"This needs the scope {scope}, which you do not have.")


def may(request: Request, scope: Scope) -> bool:
    """Return whether a key has a scope; a login of staff has all of them, others chat."""
    if grant := _grant(request):
        return scope in grant.scopes
    return scope == Scope.CHAT or bool(request.user.is_staff)


def reach_of(request: Request) -> Reach:
    """Return what of the documents a request may look into."""
    grant = _grant(request)
    reach: Reach = grant.reach if grant else EVERYTHING
    return reach


def _grant(request: Request) -> Any:
    """Return the `conversations.grants.Grant` of the key; None for who logged in."""
    key: Any = request.auth
    return key.grant if key else None
