"""Reach: which assistant answers a message, and what of the documents it may look into."""

import uuid
from collections.abc import Sequence

from django.db.models import OuterRef, Q, QuerySet
from knox.models import AuthToken

from agents.models import Envelope
from conversations.assistants import Assistant
from conversations.errors import (
    ForeignCollection,
    NothingToRead,
    OtherAssistant,
    UnknownAssistant,
    UnusableFilter,
)
from conversations.grants import UNBOUND, Bounds, collections_within
from knowledge.models import Collection
from knowledge.postgres_text import storable


def bound_to(token: object) -> Bounds:
    """Return what an API key is bound to; nothing for what is none."""
    return token.grant.bounds if isinstance(token, AuthToken) else UNBOUND


def assistants_of(bound: Bounds) -> QuerySet[Assistant]:
    """Return the assistants that can be asked with a key that is `bound` to one, or to none."""
    name = bound.assistant
    return Assistant.objects.filter(name=name) if name else Assistant.objects.all()


def assistant_named(name: str) -> Assistant:
    """Return the assistant for who runs Docent. Raises UnknownAssistant naming those there are."""
    assistant = Assistant.objects.filter(name=storable(name)).first()
    if assistant is None:
        names = ", ".join(Assistant.objects.values_list("name", flat=True)) or "none yet"
        raise UnknownAssistant(f"There is no assistant {name!r}. There are: {names}.")
    return assistant


def chosen(name: str, bound: Bounds, begun: str | None) -> Assistant | None:
    """Return the assistant that is asked; None when it is none in particular.

    `name` is what the client says, `bound` what its key is bound to, and `begun` with whom the
    conversation began (None: it has not). Raises UnknownAssistant, which tells nothing of others,
    and OtherAssistant.
    """
    # PostgreSQL can't even compare a name that it can't store.
    asked = storable(name) or bound.assistant or begun or ""
    assistant = assistants_of(bound).filter(name=asked).first() if asked else None
    if asked and assistant is None:
        raise UnknownAssistant
    if begun is not None and asked != begun:
        raise OtherAssistant
    return assistant


def refuse_unready(assistant: Assistant | None, bound: Bounds) -> None:
    """Raise NothingToRead where no route is open, or none of the named collections exists.

    They are named by an assistant or by a key.
    """
    if assistant and not assistant.open_routes:
        raise NothingToRead("None of the routes of this assistant is open here.")
    if _is_limited(assistant, bound) and not collections_within(assistant, bound).exists():
        raise NothingToRead


def own_collections(assistant: Assistant | None, bound: Bounds) -> list[Collection]:
    """Return the collections that an assistant or a key names; none where neither names any."""
    return list(collections_within(assistant, bound)) if _is_limited(assistant, bound) else []


def _is_limited(assistant: Assistant | None, bound: Bounds) -> bool:
    return bool((assistant and assistant.collections) or bound.collections)


def chosen_collections(
    assistant: Assistant | None, names: Sequence[str], bound: Bounds = UNBOUND
) -> list[Collection]:
    """Return the collections of these names.

    Raises ForeignCollection for one that is out of reach of the assistant or of the key, whether
    it exists or not.
    """
    wanted = list(dict.fromkeys(storable(name) for name in names))
    within = collections_within(assistant, bound).filter(name__in=wanted)
    own = {collection.name: collection for collection in within}
    if foreign := sorted(set(wanted) - own.keys()):
        raise ForeignCollection(f"There is no collection {foreign[0]!r} here.")
    return [own[name] for name in wanted]


def searched(
    assistant: Assistant | None, names: Sequence[str], bound: Bounds = UNBOUND
) -> list[str]:
    """Return the names of the collections that a turn searches, of those its conversation chose.

    Empty: every one that is not only searched by name. Where an assistant or a key names some, they
    are named even if none of them exists: nothing else may be searched instead.
    """
    if assistant is None and not bound.collections:
        return list(names)
    own = [each.name for each in collections_within(assistant, bound)]
    both = [name for name in names if name in own]
    if both or not _is_limited(assistant, bound):
        return both
    return own or list(bound.collections or (assistant.collections if assistant else ()))


def foreign_turns(conversation_id: uuid.UUID | OuterRef, bound: Bounds) -> QuerySet[Envelope]:
    """Return the turns of a conversation that looked at documents out of reach of a key."""
    turns = Envelope.objects.filter(conversation_id=conversation_id)
    if not bound.collections:
        return turns.none()
    within = Q(memory__collections__contained_by=list(bound.collections))
    return turns.filter(~within | Q(memory__collections=[]))


def audience(assistant: Assistant | None, wanted: str) -> str:
    """Return for whom the documents must be. Raises UnusableFilter for another than its own."""
    if assistant is None or not assistant.audience:
        return wanted
    if wanted not in {"", assistant.audience}:
        raise UnusableFilter("This assistant answers from documents for another audience.")
    return assistant.audience
