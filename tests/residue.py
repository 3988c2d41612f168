"""Residue: where a word still stands, in any row of any table and under any key of Redis."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import redis

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
READ = {
    "string": lambda client, key: client.get(key),
    "list": lambda client, key: client.lrange(key, 0, -1),
    "set": lambda client, key: client.smembers(key),
    "zset": lambda client, key: client.zrange(key, 0, -1),
    "hash": lambda client, key: client.hgetall(key),
    "stream": lambda client, key: client.xrange(key),
}


def places(cursor: Any, client: "redis.Redis", word: str) -> set[str]:
    """Return the tables and keys that hold a word of letters and digits, whatever its case."""
    return rows_with(cursor, word) | keys_with(client, word)


def rows_with(cursor: Any, word: str) -> set[str]:
    """Return the tables of which a row holds the word, in any column."""
    cursor.execute(TABLES)
    found = set()
    for (table,) in cursor.fetchall():
        cursor.execute(
            f'SELECT EXISTS (SELECT FROM "{table}" AS row WHERE row::text ILIKE %s)',  # noqa: S608 tables
            [f"%{word}%"],
        )
        if cursor.fetchone()[0]:
            found.add(table)
    return found


def keys_with(client: "redis.Redis", word: str) -> set[str]:
    """Return the keys that hold the word, in their name or beneath."""
    found = set()
    for key in client.scan_iter():
        kind: Any = client.type(key)
        held = f"{key} {READ[kind](client, key)}"
        if word.lower() in held.lower():
            found.add(str(key))
    return found
