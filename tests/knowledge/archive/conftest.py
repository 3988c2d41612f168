"""Fixtures: a collection that holds one of everything, and its archive."""

from pathlib import Path

import pytest

from knowledge.archive import export
from knowledge.models import Collection
from tests.knowledge import islands


@pytest.fixture
def island() -> Collection:
    """A collection that holds one of everything."""
    return islands.island()


@pytest.fixture
def archive(island: Collection, tmp_path: Path) -> Path:
    """The exported island, which is still there."""
    path = tmp_path / "island.docent"
    export(island, path)
    return path
