"""Cache: what a search found is found again without searching, while nothing changed.

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
from knowledge.search.results import SearchResult, load
from knowledge.search.scope import Scope
from knowledge.search.sql import Milliseconds, array_literal, rows, timed

log = logging.getLogger(__name__)

PREFIX = "docent:search:"
# What the result depends on beside question, collections and filters.
SETTINGS = ("SEARCH_FETCH_K", "SEARCH_MIN_HITS", "MMR_LAMBDA", "SEARCH_RERANK")
REVISIONS = """
SELECT collection_id, number FROM knowledge_revision
WHERE collection_id = ANY(%(collections)s::bigint[]) ORDER BY collection_id
"""
# A search takes 15 ms without reading: who keeps what it found may not take much longer.
PATIENCE_SECONDS = 0.25


@cache
def client(url: str) -> "redis.Redis":
    """Return this process's client."""
    return redis.Redis.from_url(
        url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
    )


def cache_key(wordings: Sequence[Wording], where: Scope, limit: int, owner: str) -> str:
    """Return the key under which an equal search of the same owner finds what this one does.

    Empty when CACHE_SEARCH_SECONDS is 0: nothing is kept.
    """
    if not settings.CACHE_SEARCH_SECONDS:
        return ""
    # Of another's search nobody may notice even that there was one.
    parts = [
        owner,
        [asdict(each) for each in wordings],
        asdict(where),
        limit,
        [getattr(settings, name) for name in SETTINGS],
        rows(REVISIONS, {"collections": array_literal(where.collections)}),
    ]
    text = json.dumps(parts, ensure_ascii=False).encode("utf-8", "replace")
    return PREFIX + blake2b(text, digest_size=20).hexdigest()


def get(key: str, milliseconds: Milliseconds) -> SearchResult | None:
    """Return what an equal search found; None when none did lately, or part of it is gone."""
    entry = stored_entry(key) if key else None
    if entry is None:
        return None
    with timed(milliseconds, "selection"):
        chunks = load([chunk for chunk, _, _ in entry["chunks"]])
    if len(chunks) < len(entry["chunks"]):
        return None
    return SearchResult(
        passages=tuple(
            chunks[chunk].passage(score, cosine) for chunk, score, cosine in entry["chunks"]
        ),
        quality=entry["quality"],
        no_context=entry["no_context"],
        stats=entry["stats"] | {"ms": milliseconds, "cached": True},
    )


def put(key: str, result: SearchResult) -> None:
    """Keep what a search found for CACHE_SEARCH_SECONDS; not what it found with half its means."""
    if not key or result.error:
        return
    entry = {
        "chunks": [
            [passage.chunk_id, passage.score, passage.cosine] for passage in result.passages
        ],
        "quality": result.quality,
        "no_context": result.no_context,
        "stats": {name: value for name, value in result.stats.items() if name != "ms"},
    }
    try:
        redis_client = client(settings.REDIS_URL)
        redis_client.set(key, json.dumps(entry), ex=settings.CACHE_SEARCH_SECONDS)
    except redis.RedisError as error:
        log.info("what a search found was not kept: %s", error)


def stored_entry(key: str) -> dict[str, Any] | None:
    """Return what is kept under a key; nothing while Redis is away."""
    try:
        text: Any = client(settings.REDIS_URL).get(key)
    except redis.RedisError as error:
        log.info("what a search found could not be looked up: %s", error)
        return None
    entry: dict[str, Any] | None = json.loads(text) if text else None
    return entry
