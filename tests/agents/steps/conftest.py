"""Fixtures for the steps of turns."""

import pytest

from agents.names import Role
from agents.steps import events


@pytest.fixture(autouse=True)
def silence(own_redis: None) -> None:
    """No bells from before."""
    events.connection().delete(*(role.queue for role in Role))
