"""Migration: keeps the embedded database in step with the code; asks for it on another."""

import hashlib
import os

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from assistant.errors import SetupError

NOTE = "migrated"


class Unmigrated(SetupError):
    """The database isn't prepared for this version. Run: python3 manage.py migrate"""


def prepare() -> None:
    """Migrate the embedded database if it needs it; raise Unmigrated when a configured one does.

    Costs a look at a file with the embedded database, a query with another.
    """
    django.setup()
    if os.environ.get("DATABASE_URL"):
        _refuse_unmigrated()
        return
    note = settings.STATE_DIR / NOTE
    if note.exists() and note.read_text() == _fingerprint():
        return
    call_command("migrate", verbosity=0, interactive=False)
    note.write_text(_fingerprint())


def _fingerprint() -> str:
    """Changes with our migrations, and with the versions of what brings others."""
    ours = sorted(path.name for path in settings.BASE_DIR.glob("*/migrations/*.py"))
    pins = (settings.BASE_DIR / "pyproject.toml").read_text()
    return hashlib.sha256("\n".join([*ours, pins]).encode()).hexdigest()


def _refuse_unmigrated() -> None:
    executor = MigrationExecutor(connection)
    unmigrated = executor.migration_plan(executor.loader.graph.leaf_nodes())
    connection.close()
    if unmigrated:
        raise Unmigrated
