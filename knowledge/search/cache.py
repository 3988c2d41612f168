"""Recent: what a search found is found again without searching, while nothing changed.

Redis keeps ids and scores, and not a word of a document: texts are read from PostgreSQL each time,
so what was deleted is never shown again. Every change of a collection has a number, which is part
of the key: what was found before it is not asked for any more.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from hashlib import blake2b
from typing import Any

import redis
from django.conf import settings

from knowledge.search.explanation import Wording
from knowledge.search.results import Found, load
from knowledge.search.scope import Scope
from knowledge.search.sql import Milliseconds, array_literal, rows, timed

log = logging.getLogger(__name__)

PREFIX = "docent:search:"
# What the result depends on beside question, collections and filters.
SETTINGS = ("SEARCH_FETCH_K", "SEARCH_MIN_HITS", "MMR_LAMBDA")
REVISIONS = """
SELECT collection_id, number FROM knowledge_revision
WHERE collection_id = ANY(%(collections)s::bigint[]) ORDER BY collection_id
"""
# A search takes 15 ms: who keeps what it found may not take much longer.
PATIENCE_SECONDS = 0.25


@cache
def connection(url: str) -> "redis.Redis":
    """Return this process's client."""
    return redis.Redis.from_url(
        url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
    )


def place(wordings: Sequence[Wording], where: Scope, limit: int, owner: str) -> str:
    """Return the key under which an equal search of the same owner finds what this one does.

    Empty when CACHE_SEARCH_SECONDS is 0: nothing is kept.
    """
    if not settings.CACHE_SEARCH_SECONDS:
        return ""
    # Of another's search nobody may notice even that there was one.
    told = [
        owner,
        [asdict(each) for each in wordings],
        asdict(where),
        limit,
        [getattr(settings, name) for name in SETTINGS],
        rows(REVISIONS, {"collections": array_literal(where.collections)}),
    ]
    said = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    return PREFIX + blake2b(said, digest_size=20).hexdigest()


def take(key: str, milliseconds: Milliseconds) -> Found | None:
    """Return what an equal search found; None when none did lately, or part of it is gone."""
    kept = fetched(key) if key else None
    if kept is None:
        return None
    with timed(milliseconds, "selection"):
        chunks = load([chunk for chunk, _, _ in kept["chunks"]])
    if len(chunks) < len(kept["chunks"]):
        return None
    return Found(
        passages=tuple(
            chunks[chunk].passage(score, cosine) for chunk, score, cosine in kept["chunks"]
        ),
        quality=kept["quality"],
        no_context=kept["no_context"],
        stats=kept["stats"] | {"ms": milliseconds, "cached": True},
    )


def keep(key: str, found: Found) -> None:
    """Keep what a search found for CACHE_SEARCH_SECONDS; not what it found with half its means."""
    if not key or found.error:
        return
    kept = {
        "chunks": [[each.chunk_id, each.score, each.cosine] for each in found.passages],
        "quality": found.quality,
        "no_context": found.no_context,
        "stats": {name: value for name, value in found.stats.items() if name != "ms"},
    }
    try:
        store = connection(settings.REDIS_URL)
        store.set(key, json.dumps(kept), ex=settings.CACHE_SEARCH_SECONDS)
    except redis.RedisError as error:
        log.info("what a search found was not kept: %s", error)


def fetched(key: str) -> dict[str, Any] | None:
    """Return what is kept under a key; nothing while Redis is away."""
    try:
        said: Any = connection(settings.REDIS_URL).get(key)
    except redis.RedisError as error:
        log.info("what a search found could not be looked up: %s", error)
        return None
    kept: dict[str, Any] | None = json.loads(said) if said else None
    return kept
