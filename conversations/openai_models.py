"""OpenAI models: what clients of OpenAI's API can ask: assistants, collections, or everything."""

from dataclasses import dataclass

from conversations.errors import UnknownModel
from conversations.grants import Bounds, collections_within
from conversations.reach import assistants_of

# No collection and no assistant can have this name.
EVERYTHING = "docent/all"


@dataclass(frozen=True)
class OfferedModel:
    """One name that a client can ask."""

    name: str
    title: str
    created: int = 0  # seconds since 1970
    assistant: str = ""  # empty: none in particular
    # None: all that are not only searched by name, or those of the assistant.
    collections: tuple[str, ...] | None = None


def offered(bound: Bounds) -> list[OfferedModel]:
    """Return what can be asked with a key that is bound to an assistant, collections, or nothing.

    An assistant comes before a collection of the same name.
    """
    assistants = [
        OfferedModel(each.name, str(each), int(each.updated.timestamp()), assistant=each.name)
        for each in assistants_of(bound)
    ]
    if bound.assistant:
        return assistants
    taken = {each.name for each in assistants}
    collections = [
        OfferedModel(each.name, str(each), int(each.created.timestamp()), collections=(each.name,))
        for each in collections_within(None, bound)
        if each.name not in taken
    ]
    return [OfferedModel(EVERYTHING, "All documents"), *assistants, *collections]


def model_named(name: str, bound: Bounds) -> OfferedModel:
    """Return what is asked by this name. Raises UnknownModel, which tells nothing of others."""
    for model in offered(bound):
        if model.name == name:
            return model
    raise UnknownModel(f"There is no model {name!r} here.")


def embedding_model_named(name: str, bound: Bounds) -> str:
    """Return the embedding model that this names, itself or as that of what can be asked.

    Raises UnknownModel, also where the collections that are meant have several.
    """
    models = {each.name: embedding_models(each, bound) for each in offered(bound)}
    if any(name in own for own in models.values()):
        return name
    own = models.get(name, set())
    if len(own) > 1:
        raise UnknownModel(f"{name!r} has several embedding models; name one of them.")
    if not own:
        raise UnknownModel(f"There is no embedding model {name!r} here.")
    return own.pop()


def embedding_models(model: OfferedModel, bound: Bounds) -> set[str]:
    """Return the names of the embedding models by which its documents are found."""
    assistant = assistants_of(Bounds(model.assistant)).get() if model.assistant else None
    collections = collections_within(assistant, bound)
    if model.collections:
        collections = collections.filter(name__in=model.collections)
    elif not (assistant or bound.collections):
        collections = collections.filter(only_by_name=False)
    return set(collections.values_list("embedding_model", flat=True))
