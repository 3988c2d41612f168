"""The vector extension: created when we may, explained when we may not."""

from collections.abc import Callable
from importlib import import_module

import pytest
from django.db import connection

from knowledge.errors import DatabaseUnsuitable

pytestmark = pytest.mark.django_db

Sql = Callable[..., None]

migration = import_module("knowledge.migrations.0001_vector_extension")


@pytest.fixture
def sql() -> Sql:
    """Run statements; the test's transaction takes all of it back, roles included."""

    def run(*statements: str) -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    return run


def require_vector() -> None:
    with connection.schema_editor(atomic=False) as editor:
        migration.require_vector(None, editor)


def test_extension_that_exists_needs_no_permission(sql: Sql) -> None:
    sql("CREATE ROLE nobody_special", "SET LOCAL ROLE nobody_special")
    require_vector()


def test_missing_extension_is_created_when_we_may(sql: Sql) -> None:
    sql("DROP EXTENSION vector CASCADE")
    require_vector()
    with connection.cursor() as cursor:
        assert migration.installed_version(cursor) is not None


def test_without_permission_the_message_is_what_an_administrator_must_run(sql: Sql) -> None:
    sql(
        "DROP EXTENSION vector CASCADE",
        "CREATE ROLE nobody_special",
        "SET LOCAL ROLE nobody_special",
    )
    with pytest.raises(DatabaseUnsuitable) as refused:
        require_vector()
    message = str(refused.value)
    assert "\n    CREATE EXTENSION vector;\n" in message
    assert repr(connection.settings_dict["NAME"]) in message
    assert "as a superuser" in message


def test_server_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "POSTGRESQL", 990000)
    with pytest.raises(DatabaseUnsuitable, match="PostgreSQL 15 or newer"):
        require_vector()


def test_extension_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "PGVECTOR", (99, 0))
    with pytest.raises(DatabaseUnsuitable, match="ALTER EXTENSION vector UPDATE"):
        require_vector()
