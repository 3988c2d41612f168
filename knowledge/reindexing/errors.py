"""Errors of a change of embedding model."""

from knowledge.errors import KnowledgeError


class RecallLost(KnowledgeError):
    """The new model finds less than the one in use."""


class NoWayBack(KnowledgeError):
    """There are no vectors of another model to go back to."""


class InUse(KnowledgeError):
    """The vectors are those that are searched."""
