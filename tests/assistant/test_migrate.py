"""Migrating: one process at a time, and only what these migrations began."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from assistant import commandline
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


@pytest.mark.django_db
def test_database_of_other_migrations_is_refused_with_what_to_do() -> None:
    MigrationRecorder(connection).record_applied("agents", "0001_turns")
    for start in (lambda: call_command("migrate", verbosity=0), commandline.migrate_if_needed):
        with pytest.raises(commandline.Foreign) as refused:
            start()
        assert "agents.0001_turns. Nothing in it was changed." in str(refused.value)
        assert "name an empty database in DATABASE_URL" in str(refused.value)


@pytest.mark.django_db
def test_migrations_that_another_package_has_squashed_are_no_reason_to_refuse() -> None:
    MigrationRecorder(connection).record_applied("knox", "0000_before")
    call_command("migrate", verbosity=0)
