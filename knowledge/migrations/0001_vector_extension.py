"""Make sure the database can hold vectors."""

from typing import Any

from django.db import migrations
from django.db.utils import DatabaseError

from knowledge.errors import DatabaseUnsuitable

POSTGRESQL = 150000
PGVECTOR = (0, 7)


def require_vector(apps: Any, schema_editor: Any) -> None:
    """Create the extension unless it exists; say what an administrator must do if we may not."""
    connection = schema_editor.connection
    database = connection.settings_dict["NAME"]
    if connection.pg_version < POSTGRESQL:
        raise DatabaseUnsuitable(
            f"Docent needs PostgreSQL 15 or newer; {database!r} is on "
            f"{connection.pg_version // 10000}."
        )
    with connection.cursor() as cursor:
        version = installed_version(cursor)
        if version is None:
            create(cursor, database)
            version = installed_version(cursor)
    if version is None or tuple(int(part) for part in version.split(".")[:2]) < PGVECTOR:
        raise DatabaseUnsuitable(
            f"Docent needs pgvector 0.7 or newer; database {database!r} has {version}. After "
            "installing it, an administrator must run this in that database as a superuser:\n\n"
            "    ALTER EXTENSION vector UPDATE;\n"
        )


def installed_version(cursor: Any) -> str | None:
    """Return the version of the extension in this database; None when it is not there."""
    cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    row = cursor.fetchone()
    return row[0] if row else None


def create(cursor: Any, database: str) -> None:
    """Create the extension; raise DatabaseUnsuitable with the statement to run instead."""
    try:
        # IF NOT EXISTS: another process may be migrating the same database.
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except DatabaseError as error:
        cause = str(error).strip().splitlines()[0]
        raise DatabaseUnsuitable(
            f"The extension 'vector' (pgvector 0.7 or newer) is missing in database {database!r} "
            f"and could not be created: {cause}. With pgvector installed on the server, an "
            "administrator must run this in that database as a superuser, then start again:\n\n"
            "    CREATE EXTENSION vector;\n"
        ) from error


class Migration(migrations.Migration):
    """pgvector, which every later migration relies on."""

    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [migrations.RunPython(require_vector, migrations.RunPython.noop)]
