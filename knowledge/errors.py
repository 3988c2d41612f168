"""Errors of the knowledge app: the docstring is the default message."""

from collections.abc import Iterable

from django.core.management.base import CommandError


class KnowledgeError(Exception):
    """The knowledge base could not do what was asked."""

    code = "invalid"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class UnknownCollection(KnowledgeError):
    """There is no such collection."""

    code = "unknown_collection"

    def __init__(self, unknown: Iterable[str], known: Iterable[str]) -> None:
        names = ", ".join(repr(name) for name in sorted(unknown))
        existing = ", ".join(sorted(known)) or "none yet"
        super().__init__(f"There is no collection {names}. Collections that exist: {existing}.")
        # For who may not know of others.
        self.here = f"There is no collection {names} here."


class InvalidCollectionName(KnowledgeError):
    """A collection's name is not a slug."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} cannot name a collection: use 1 to 63 of a-z, 0-9, '-' and '_', "
            "beginning with a letter or a digit."
        )


class EmbeddingUnavailable(KnowledgeError):
    """The embedding model cannot be loaded."""


class Unreadable(KnowledgeError):
    """The file holds nothing that can be read."""


class NothingToIngest(KnowledgeError):
    """There is nothing to ingest at that path."""


class NameTaken(KnowledgeError):
    """Another file of that name is in the collection already."""

    code = "name_taken"

    def __init__(self, names: Iterable[str], collection: str, way: str) -> None:
        listed = ", ".join(repr(name) for name in names)
        super().__init__(
            f"The collection {collection!r} has other documents from a file of the name {listed} "
            f"already. {way}, or give it another name."
        )


class DatabaseUnsuitable(KnowledgeError, CommandError):
    """The database cannot hold vectors.

    A CommandError too, so that `migrate` prints the message instead of a traceback.
    """
