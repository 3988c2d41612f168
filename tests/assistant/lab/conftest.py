"""Fixtures: the small documents that measuring is tried on, and models that answer sensibly."""

from tests.agents.conftest import sensible
from tests.knowledge.conftest import collection, island, server

__all__ = ["collection", "island", "sensible", "server"]
