"""migrate: Django's, one at a time."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from assistant.commandline import refuse_foreign

LOCK = 0x0D0CE30


class Command(migrate.Command):
    """Waits while another process migrates the same database: two may start at once."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, alone. Raises Foreign."""
        with _alone(options["database"]):
            refuse_foreign(MigrationLoader(connections[options["database"]]))
            super().handle(*args, **options)


@contextmanager
def _alone(database: str) -> Iterator[None]:
    """Hold a lock of the database, on a connection of its own.

    It belongs to a transaction, which a pooler in between keeps on one connection, and which ends
    with the process.
    """
    lock = connections[database].copy()
    with closing(lock):
        lock.set_autocommit(False)
        cursor = lock.cursor()
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        yield
