"""Migrating: one process at a time."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings

from tests import servers

ROOT = settings.BASE_DIR
EMPTY = "empty_for_migration"


@pytest.fixture
def empty() -> Iterator[str]:
    """The address of a database without tables, on the server of the tests."""
    yield servers.empty_database(EMPTY)
    servers.drop_database(EMPTY)


def test_two_that_migrate_an_empty_database_at_once_both_succeed(empty: str) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "manage.py", "migrate"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": empty},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
