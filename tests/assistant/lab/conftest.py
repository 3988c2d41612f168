"""Fixtures of what is measured: models that answer, and a folder of pages."""

from tests.agents.conftest import sensible
from tests.knowledge.conftest import island

__all__ = ["island", "sensible"]
