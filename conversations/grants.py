"""Grants: what an API key may do, what it is bound to, and how long it holds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import (
    CASCADE,
    PROTECT,
    DateTimeField,
    ForeignKey,
    JSONField,
    Model,
    OneToOneField,
    PositiveIntegerField,
    Q,
    QuerySet,
    Value,
)
from django.utils.timezone import now
from knox.models import AuthToken

from conversations.assistants import Assistant, check_collections
from knowledge.collections import Reach
from knowledge.identifiers import Scope
from knowledge.models import Collection
from knowledge.models.documents import COLLECTION_NAME

# Last use is no finer than this: not every request writes.
USE_INTERVAL = timedelta(minutes=1)
LONGEST_DAYS = 36_500
# Of questions a minute with the key of a site, altogether and by one visitor, unless told.
QUESTIONS, QUESTIONS_OF_A_VISITOR = 120, 10
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Bounds:
    """What a key is bound to, by name; empty: to nothing."""

    assistant: str = ""
    collections: tuple[str, ...] = ()


UNBOUND = Bounds()


def chat_alone() -> list[str]:
    """Return the scopes of a key of which nothing is said."""
    return [Scope.CHAT.value]


class Grant(Model):
    """What one API key may do and reach; every key has one, and `token.user` owns what it asks."""

    token = OneToOneField("knox.AuthToken", CASCADE, primary_key=True, related_name="grant")
    scopes = JSONField(default=chat_alone)
    # By name: when one is deleted, nothing else is reached instead. Empty: not bound.
    collections = JSONField(default=list, blank=True)
    # Protected: a key whose assistant went would reach everything.
    assistant = ForeignKey(Assistant, PROTECT, null=True, blank=True, related_name="grants")
    # Origins of the pages that a public key may chat on, in a frame, and that is all it may do.
    # Empty: the key is a secret, which a program sends.
    sites = JSONField(default=list, blank=True, db_default=Value([], JSONField()))
    # Of a public key, in a minute; 0 sets none.
    questions = PositiveIntegerField(default=QUESTIONS, db_default=QUESTIONS)
    questions_of_a_visitor = PositiveIntegerField(
        default=QUESTIONS_OF_A_VISITOR, db_default=QUESTIONS_OF_A_VISITOR
    )
    last_used = DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.token.token_key

    def clean(self) -> None:
        """Raise ValidationError that says what is wrong and what is allowed."""
        errors: dict[str, str] = {}
        scopes = self.scopes
        if not scopes or not isinstance(scopes, list) or not all(each in SCOPES for each in scopes):
            errors["scopes"] = f"Choose one or more of: {', '.join(SCOPES)}."
        elif Scope.ADMIN in scopes and self.bounds != UNBOUND:
            errors["scopes"] = "A key with the scope admin cannot be bound: it sees what all ask."
        try:
            self._check_collections()
        except ValidationError as error:
            errors["collections"] = error.messages[0]
        if self.sites and self.bounds == UNBOUND:
            errors["sites"] = "Anybody may use it: bind it to a collection or to an assistant."
        elif self.sites and scopes != [Scope.CHAT]:
            errors["sites"] = "A key for a site has the scope chat alone."
        if errors:
            raise ValidationError(errors)

    def _check_collections(self) -> None:
        # Whoever takes documents in may begin the collection.
        if Scope.DOCUMENTS not in self.scopes:
            check_collections(self.collections)
        for name in self.collections:
            if not re.match(COLLECTION_NAME, str(name)):
                raise ValidationError(f"{name!r} cannot name a collection.")

    @property
    def bounds(self) -> Bounds:
        """What it is bound to."""
        assistant = self.assistant.name if self.assistant else ""
        return Bounds(assistant, tuple(sorted(self.collections)))

    @property
    def reach(self) -> Reach:
        """What of the documents it may look into."""
        audience = self.assistant.audience if self.assistant else ""
        if self.bounds == UNBOUND:
            return Reach(None, audience)
        if self.assistant is None:
            return Reach(self.bounds.collections)
        own = collections_within(self.assistant, self.bounds)
        return Reach(tuple(own.order_by("name").values_list("name", flat=True)), audience)

    def note_use(self) -> None:
        """Store that it was used now, unless it is stored that it was a moment ago."""
        moment = now()
        stale = moment - USE_INTERVAL
        if self.last_used and self.last_used > stale:
            return
        # Again in the database: of several requests at once, one writes.
        unused = Q(last_used=None) | Q(last_used__lte=stale)
        Grant.objects.filter(unused, pk=self.pk).update(last_used=moment)


class Key(AuthToken):
    """A key as people call it: by whom it is for, and how it begins."""

    class Meta:
        proxy = True
        ordering = ("user__username", "-created")

    def __str__(self) -> str:
        return f"{self.user.get_username()}, {self.token_key}…"


SCOPES = tuple(str(scope) for scope in Scope)


def collections_of(assistant: Assistant) -> "QuerySet[Collection]":
    """Return the collections that an assistant may look into."""
    if assistant.collections:
        return Collection.objects.filter(name__in=assistant.collections)
    return Collection.objects.filter(only_by_name=False)


def collections_within(assistant: Assistant | None, bounds: Bounds) -> "QuerySet[Collection]":
    """Return the collections that can be looked into with a key, by way of an assistant or none."""
    own = collections_of(assistant) if assistant else Collection.objects.all()
    return own.filter(name__in=bounds.collections) if bounds.collections else own


def origin_of(site: str) -> str:
    """Return the origin of a site's pages as browsers send it: no path, no usual port.

    Raises ValidationError for what is none.
    """
    try:
        parts = urlsplit(site.strip().lower())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    # What is not in a name could end the header that names the site.
    is_host = re.fullmatch(r"[\w.-]+", parts.hostname or "", re.ASCII)
    if (
        parts.scheme not in PORTS
        or not is_host
        or parts.path not in {"", "/"}
        or {*"@?#"} & {*site}
    ):
        raise ValidationError(f"{site[:60]!r} is no site like https://www.example.org.")
    usual = port in {None, PORTS[parts.scheme]}
    return f"{parts.scheme}://{parts.hostname}" + ("" if usual else f":{port}")


@transaction.atomic
def issue(
    name: str,
    *,
    scopes: Sequence[str] = (Scope.CHAT,),
    collections: Sequence[str] = (),
    assistant: Assistant | None = None,
    days: int | None = None,
    sites: Sequence[str] = (),
    **limits: int,
) -> tuple[Grant, str]:
    """Make a key for the user of this name, and the user; return its grant and the key itself.

    It ends after `days`, None: never. Only its hash is stored. That for `sites` is public, known by
    how it begins, and no program can be let in with it; its `limits` are `questions` and
    `questions_of_a_visitor`. Raises ValidationError by field.
    """
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise ValidationError({"days": f"A key holds for 1 to {LONGEST_DAYS:,} days."})
    expiry = None if days is None else timedelta(days=days)
    token, key = AuthToken.objects.create(_owner(name), expiry)  # type: ignore[no-untyped-call]
    grant = Grant(
        token=token,
        scopes=list(dict.fromkeys(scopes)),
        collections=list(dict.fromkeys(collections)),
        assistant=assistant,
        sites=list(dict.fromkeys(map(origin_of, sites))),
        **limits,
    )
    grant.full_clean(exclude=["token"])
    grant.save(force_insert=True)
    return grant, token.token_key if grant.sites else key


def _owner(name: str) -> User:
    """Return the user of this name that keys belong to, made if need be: nobody logs in as one."""
    try:
        User(username=name).clean_fields(exclude=["password"])
    except ValidationError as error:
        reason = (
            f"{name[:40]!r} cannot name a key: use at most 150 letters, digits, '@', '.', '+', "
            "'-' and '_'."
        )
        raise ValidationError({"name": reason}) from error
    user, new = User.objects.get_or_create(username=name)
    if new:
        user.set_unusable_password()
        user.save()
    elif user.has_usable_password() or user.is_superuser:
        raise ValidationError({"name": f"{name!r} is somebody who logs in: choose another name."})
    return user


def grants() -> "QuerySet[Grant]":
    """Return the grants of all keys, by owner and age."""
    rows = Grant.objects.select_related("token__user", "assistant")
    return rows.order_by("token__user__username", "token__created")


def standing(grant: Grant) -> dict[str, str]:
    """Return what lists say of a key, in words."""
    reached = [grant.assistant.name] if grant.assistant else []
    return {
        "may": f"chat on {', '.join(grant.sites)}" if grant.sites else ", ".join(grant.scopes),
        "reaches": ", ".join([*reached, *grant.collections]) or "everything",
    }
