"""Migrating: one process at a time."""

import os
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection

ROOT = settings.BASE_DIR
EMPTY = "empty_for_migration"


@pytest.fixture
def empty_database(transactional_db: None) -> Iterator[str]:
    """The address of a database without tables, on the server of the tests."""
    address = urlsplit(os.environ["DATABASE_URL"])
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {EMPTY}")
        cursor.execute(f"CREATE DATABASE {EMPTY}")
    yield address._replace(path=f"/{EMPTY}").geturl()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {EMPTY} WITH (FORCE)")


def test_two_that_migrate_an_empty_database_at_once_both_succeed(empty_database: str) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "manage.py", "migrate"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": empty_database},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
