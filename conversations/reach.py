"""Reach: which assistant answers a message, and what of the documents it may look into."""

from collections.abc import Sequence

from django.db.models import QuerySet
from knox.models import AuthToken

from conversations.assistants import Assistant
from conversations.errors import (
    ForeignCollection,
    NothingToRead,
    OtherAssistant,
    UnknownAssistant,
    UnusableFilter,
)
from knowledge.collections import collections_named
from knowledge.models import Collection
from knowledge.postgres_text import storable


def bound_to(token: object) -> str:
    """Return the name of the assistant that an API key is bound to; nothing for what is none."""
    if not isinstance(token, AuthToken):
        return ""
    names = Assistant.objects.filter(grants__token=token).values_list("name", flat=True)
    return str(names.first() or "")


def assistants_of(bound: str) -> QuerySet[Assistant]:
    """Return the assistants that can be asked with a key that is `bound` to one, or to none."""
    return Assistant.objects.filter(name=bound) if bound else Assistant.objects.all()


def assistant_named(name: str) -> Assistant:
    """Return the assistant for who runs Docent. Raises UnknownAssistant naming those there are."""
    assistant = Assistant.objects.filter(name=storable(name)).first()
    if assistant is None:
        names = ", ".join(Assistant.objects.values_list("name", flat=True)) or "none yet"
        raise UnknownAssistant(f"There is no assistant {name!r}. There are: {names}.")
    return assistant


def chosen(name: str, bound: str, begun: str | None) -> Assistant | None:
    """Return the assistant that is asked; None when it is none in particular.

    `name` is what the client says, `bound` whom its key is bound to, and `begun` with whom the
    conversation began (None: it has not). Raises UnknownAssistant, which tells nothing of others,
    and OtherAssistant.
    """
    # PostgreSQL can't even compare a name that it can't store.
    asked = storable(name) or bound or begun or ""
    assistant = assistants_of(bound).filter(name=asked).first() if asked else None
    if asked and assistant is None:
        raise UnknownAssistant
    if begun is not None and asked != begun:
        raise OtherAssistant
    return assistant


def refuse_unready(assistant: Assistant | None) -> None:
    """Raise NothingToRead for an assistant with no open route, or no collection that exists."""
    if assistant is None:
        return
    if not assistant.open_routes:
        raise NothingToRead("None of the routes of this assistant is open here.")
    if assistant.collections and not collections_of(assistant).exists():
        raise NothingToRead


def collections_of(assistant: Assistant) -> QuerySet[Collection]:
    """Return the collections that an assistant may look into."""
    if assistant.collections:
        return Collection.objects.filter(name__in=assistant.collections)
    return Collection.objects.filter(only_by_name=False)


def own_collections(assistant: Assistant | None) -> list[Collection]:
    """Return the collections that an assistant names; none where it names none."""
    return list(collections_of(assistant)) if assistant and assistant.collections else []


def chosen_collections(assistant: Assistant | None, names: Sequence[str]) -> list[Collection]:
    """Return the collections of these names.

    Raises ForeignCollection for one that is not the assistant's, whether it exists or not, and
    without an assistant knowledge.errors.UnknownCollection.
    """
    if assistant is None:
        return collections_named(names)
    own = {collection.name: collection for collection in collections_of(assistant)}
    if foreign := sorted(set(names) - own.keys()):
        raise ForeignCollection(f"There is no collection {foreign[0]!r} here.")
    return [own[name] for name in dict.fromkeys(names)]


def searched(assistant: Assistant | None, names: Sequence[str]) -> list[str]:
    """Return the names of the collections that a turn searches, of those its conversation chose.

    Empty: every one that is not only searched by name. Of an assistant that has collections of its
    own they are named even if none of them exists: nothing else may be searched instead.
    """
    if assistant is None:
        return list(names)
    own = [each.name for each in collections_of(assistant)]
    both = [name for name in names if name in own]
    if both or not assistant.collections:
        return both
    return own or list(assistant.collections)


def audience(assistant: Assistant | None, wanted: str) -> str:
    """Return for whom the documents must be. Raises UnusableFilter for another than its own."""
    if assistant is None or not assistant.audience:
        return wanted
    if wanted not in {"", assistant.audience}:
        raise UnusableFilter("This assistant answers from documents for another audience.")
    return assistant.audience
