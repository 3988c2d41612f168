"""The schema: the functions that the files say, and no index that nothing reads."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection

from knowledge.search import postings

pytestmark = pytest.mark.django_db

# Relative to the checkout: what stands in the database, whole and current.
FUNCTIONS = ("agents/steps/functions.sql", "knowledge/functions.sql")
# By name and parameters: all that tells one function from another, without the schema it is in.
DEFINED = """
SELECT proname || '(' || pg_get_function_identity_arguments(pg_proc.oid) || ')',
    replace(pg_get_functiondef(pg_proc.oid), nspname || '.', '')
FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
WHERE nspname = %s AND NOT EXISTS (
    SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e'
)
"""
TRIGGERS = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
# An index whose columns a unique key of the same table begins with.
COVERED = """
SELECT index.indexrelid::regclass::text, index.indrelid::regclass::text
FROM pg_index AS index JOIN pg_index AS key USING (indrelid)
WHERE key.indisunique AND key.indpred IS NULL AND index.indexrelid <> key.indexrelid
    AND index.indpred IS NULL AND index.indexprs IS NULL AND NOT index.indisunique
    AND index.indnkeyatts < key.indnkeyatts
    AND index.indkey[0:index.indnkeyatts - 1] = key.indkey[0:index.indnkeyatts - 1]
"""
OF_POSTINGS = """
SELECT indexdef FROM pg_indexes WHERE tablename = 'knowledge_posting'
UNION ALL SELECT conname || ': ' || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = 'knowledge_posting'::regclass ORDER BY 1
"""


def rows(statement: str, *values: str) -> list[tuple[Any, ...]]:
    """Return what the database answers."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def run(statement: str) -> None:
    """Run statements that answer nothing."""
    with connection.cursor() as cursor:
        cursor.execute(statement)


def defined(schema: str) -> dict[str, str]:
    """Return the definition of every function in the schema that no extension brought."""
    return dict(rows(DEFINED, schema))


def in_files() -> dict[str, str]:
    """Return the definition of every function that the files make in a schema of their own."""
    run("CREATE SCHEMA written; SET LOCAL search_path TO written, public")
    for path in FUNCTIONS:
        run((settings.BASE_DIR / path).read_text())
    functions = defined("written")
    run("SET LOCAL search_path TO DEFAULT; DROP SCHEMA written CASCADE")
    return functions


def differing() -> set[str]:
    """Return the functions that are not the same in the database and in the files."""
    return {name for name, _ in {*defined("public").items()} ^ {*in_files().items()}}


def test_the_functions_in_the_database_are_those_in_the_files() -> None:
    assert in_files().keys() >= {"knowledge_plain(words text)"}
    assert differing() == set()
    assert rows(TRIGGERS) == [], "a trigger belongs into the files too, and into this test"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("DROP FUNCTION agents_end", "agents_end"),
        ("ALTER FUNCTION knowledge_words STABLE COST 7", "knowledge_words"),
        ("ALTER FUNCTION agents_claim_ready RESET enable_sort", "agents_claim_ready"),
        ("CREATE FUNCTION agents_end() RETURNS text LANGUAGE sql RETURN ''", "agents_end"),
        ("CREATE OR REPLACE FUNCTION knowledge_plain(words text) RETURNS text LANGUAGE sql "
         "IMMUTABLE PARALLEL SAFE RETURN words", "knowledge_plain"),
    ],
    ids=["missing", "other attributes", "other settings", "one more", "other body"],
)  # fmt: skip
def test_a_function_that_differs_is_noticed(change: str, name: str) -> None:
    run(change)
    assert {each.split("(")[0] for each in differing()} == {name}


@pytest.mark.parametrize("path", FUNCTIONS)
def test_the_newest_frozen_copy_is_the_file(path: str) -> None:
    app = settings.BASE_DIR / path.split("/")[0]
    newest = max((app / "migrations").glob("*_functions.sql"))
    assert newest.with_suffix(".py").exists(), "a migration of the same name loads it"
    assert newest.read_text() == (settings.BASE_DIR / path).read_text()


def own_tables() -> Iterator[str]:
    """Yield the tables of our models, without those Django makes between two of them."""
    for label in ("agents", "billing", "conversations", "knowledge"):
        yield from (model._meta.db_table for model in apps.get_app_config(label).get_models())


def test_no_index_repeats_the_beginning_of_a_unique_key() -> None:
    own = {*own_tables()}
    assert [index for index, table in rows(COVERED) if table in own] == []
    run("CREATE INDEX needless ON knowledge_chunk (document_id)")
    assert [index for index, table in rows(COVERED) if table in own] == ["needless"]


def test_postings_written_anew_have_the_indexes_and_keys_they_were_migrated_with() -> None:
    migrated = rows(OF_POSTINGS)
    assert len(migrated) >= 4
    postings.rebuild()
    assert rows(OF_POSTINGS) == migrated
