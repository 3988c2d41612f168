"""Registry: the embedding models, found by their names."""

from django.conf import settings
from django.utils.module_loading import import_string

from knowledge import providers
from knowledge.embedding.embedder import Embedder, UnknownModel
from knowledge.embedding.local import LOCAL, MODEL, MULTILINGUAL

LONGEST_NAME = 100  # what the column of vectors holds

OWN: dict[str, Embedder] = {each.name: each for each in (LOCAL, MULTILINGUAL)}

_endpoints: dict[str, Embedder] = {}


def named(name: str) -> Embedder:
    """Return the embedding model of that name, the same object every time in a process.

    `all-MiniLM-L6-v2` and `multilingual-e5-small` run on this machine; `model@provider` is asked
    of an OpenAI-compatible endpoint. Nothing is loaded or asked yet. Raises UnknownModel.
    """
    if name in OWN:
        return OWN[name]
    full = full_name(name)
    if full not in _endpoints:
        _endpoints.setdefault(full, _endpoint(full))
    return _endpoints[full]


def default() -> Embedder:
    """Return the model that new collections use, EMBEDDING_MODEL. Raises UnknownModel."""
    return named(settings.EMBEDDING_MODEL)


def full_name(name: str) -> str:
    """Return the name as it is stored: with the provider, also where it was left out.

    Nobody is asked whether there is such a model. Raises UnknownModel.
    """
    if name in OWN:
        return name
    try:
        model, provider = providers.parse_full_model_name(name)
        providers.provider(provider)
    except providers.UnknownProvider as error:
        raise UnknownModel(f"{error} The model of this machine is {MODEL}.") from error
    full = f"{model}@{provider}"
    if len(full) > LONGEST_NAME:
        raise UnknownModel(f"{full[:40]!r}… is longer than {LONGEST_NAME} characters.")
    return full


def forget() -> None:
    """Begin anew, as after a fork or a change of settings."""
    _endpoints.clear()
    LOCAL.forget()
    MULTILINGUAL.forget()


def _endpoint(full: str) -> Embedder:
    model, provider = providers.parse_full_model_name(full)
    endpoint: Embedder = import_string(settings.EMBEDDING_ENDPOINT)(
        model, providers.provider(provider)
    )
    return endpoint
