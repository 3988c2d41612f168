"""Errors of archives: what was wrong, and what can be done."""

from knowledge.errors import KnowledgeError


class UnusableArchive(KnowledgeError):
    """The archive cannot be imported."""


class CollectionDiffers(KnowledgeError):
    """The collection that is there holds something else than the archive."""
