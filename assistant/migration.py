"""Migration: keeps the embedded database in step with the code; asks for it on another."""

import hashlib
import os

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from assistant.errors import SetupError

NOTE = "migrated"
# Of other packages a database may well know migrations that an update of theirs has squashed.
OURS = frozenset({"agents", "conversations", "knowledge"})


class Unmigrated(SetupError):
    """The database isn't prepared for this version. Run: python3 manage.py migrate"""


class Foreign(SetupError):
    """Another version of Docent made the database, and no migrations lead from it to this one."""


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


def refuse_foreign(loader: MigrationLoader) -> None:
    """Raise Foreign when the database has had migrations of ours that are not here."""
    applied = {place for place in loader.applied_migrations if place[0] in OURS}
    strange = sorted(".".join(place) for place in applied - loader.disk_migrations.keys())
    if not strange:
        return
    others = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
    if os.environ.get("DATABASE_URL"):
        empty = "name an empty database in DATABASE_URL"
    else:
        empty = f"delete the folder {settings.STATE_DIR}"
    raise Foreign(
        "Another version of Docent made this database, by migrations that this one does not have: "
        f"{strange[0]}{others}. Nothing in it was changed. To keep collections, `export` them with "
        f"the version that made it. Then stop Docent, {empty}, start again and `import` them."
    )


def _fingerprint() -> str:
    """Changes with our migrations, and with the versions of what brings others."""
    ours = sorted(path.name for path in settings.BASE_DIR.glob("*/migrations/*.py"))
    pins = (settings.BASE_DIR / "pyproject.toml").read_text()
    return hashlib.sha256("\n".join([*ours, pins]).encode()).hexdigest()


def _refuse_unmigrated() -> None:
    executor = MigrationExecutor(connection)
    refuse_foreign(executor.loader)
    unmigrated = executor.migration_plan(executor.loader.graph.leaf_nodes())
    connection.close()
    if unmigrated:
        raise Unmigrated
