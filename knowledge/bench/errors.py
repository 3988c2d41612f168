"""Errors of the benches."""

from knowledge.errors import KnowledgeError


class NotComparable(KnowledgeError):
    """The other side of a comparison cannot be measured."""
