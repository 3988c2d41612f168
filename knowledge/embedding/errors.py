"""Errors of embedding models behind an endpoint: each says what the operator can do.

Whether to try again later is in `passes`: a full queue passes, a wrong key does not.
"""

from knowledge.errors import EmbeddingUnavailable


class EndpointError(EmbeddingUnavailable):
    """The embedding endpoint could not be used."""

    passes = False


class UnknownModel(EndpointError):
    """The name of the embedding model cannot be one."""


class KeyRefused(EndpointError):
    """The provider refused the key, or there is none."""


class ModelMissing(EndpointError):
    """The provider has no such model."""


class Refused(EndpointError):
    """The provider would not answer this request."""


class Malformed(EndpointError):
    """The provider answered something else than vectors."""


class WrongDimensions(EndpointError):
    """The vectors are longer or shorter than they may be."""


class Overloaded(EndpointError):
    """The provider limits how much it is asked."""

    passes = True


class Unreachable(EndpointError):
    """The provider cannot be reached, or fails."""

    passes = True


class TooSlow(EndpointError):
    """The provider did not answer in time."""

    passes = True
