"""Authentication: who asks with an API key, and how open streams hear that it ended."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.timezone import now
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from knox.models import AuthToken
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from agents.steps import events
from conversations.grants import Key

UNKNOWN = "This key is not known here, or it was revoked."
EXPIRED = "This key has expired."


class KeyAuthentication(TokenAuthentication):
    """Knows keys by their hash; one that expired stays in the lists until it is revoked."""

    def authenticate_credentials(self, token: bytes) -> tuple[User, AuthToken]:
        """Return the owner of a key and the key with its grant. Raises AuthenticationFailed."""
        try:
            digest = hash_token(token.decode("ascii"))
        except UnicodeDecodeError as error:
            raise AuthenticationFailed(UNKNOWN) from error
        rows = AuthToken.objects.select_related("user", "grant__assistant")
        found = rows.filter(digest=digest, grant__sites=[]).first()
        if found is None or not found.user.is_active:
            raise AuthenticationFailed(UNKNOWN)
        if found.expiry and found.expiry <= now():
            raise AuthenticationFailed(EXPIRED)
        found.grant.note_use()
        return found.user, found


def key_of(request: Request) -> AuthToken | None:
    """Return the key of a request; None for who logged in."""
    return request.auth if isinstance(request.auth, AuthToken) else None


def key_id(request: Request) -> str:
    """Return what tells the API key of a request apart; empty for who logged in."""
    key = key_of(request)
    return identity(key) if key else ""


def identity(key: AuthToken) -> str:
    """Return what tells a key apart, and nothing that could be used as one."""
    return str(key.digest[:12])


def revocation_stream(key: AuthToken) -> str:
    """Return the name of the stream in Redis that has an entry once a key is revoked."""
    return f"key:{identity(key)}:revoked"


@receiver(post_delete, sender=AuthToken)
@receiver(post_delete, sender=Key)
def tell_revocation(sender: object, instance: AuthToken, **_: Any) -> None:
    """Tell who follows anything with this key, once it is gone."""
    stream = revocation_stream(instance)
    transaction.on_commit(lambda: events.publish(stream, "revoked"))


def usable(key: AuthToken) -> "QuerySet[AuthToken]":
    """Return the key, if it may still be used."""
    unexpired = Q(expiry=None) | Q(expiry__gt=now())
    return AuthToken.objects.filter(unexpired, pk=key.pk, user__is_active=True)


def demand_usable(request: Request) -> None:
    """Raise AuthenticationFailed where the key of a request ended while it was answered."""
    key = key_of(request)
    if key and not usable(key).exists():
        raise AuthenticationFailed(UNKNOWN)


@sync_to_async
def is_usable(key: AuthToken) -> bool:
    """Return whether a key may still be used; leaves no connection open."""
    try:
        return usable(key).exists()
    finally:
        connection.close()
