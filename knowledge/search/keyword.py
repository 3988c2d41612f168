"""Keyword level: chunks that share words with the question, rare words counting most."""

from collections.abc import Sequence

from django.db import connection

from knowledge.search.fusion import Ranking

# Weights of text, keywords, section headings and title, in the order ts_rank takes them (D to A).
WEIGHTS = "{0.4, 0.6, 0.8, 1.0}"

# Words are joined by OR: a natural question joined by AND matches next to nothing. `ts_rank` of
# one word saturates with its frequency but knows nothing of rarity, so each word's rank is
# multiplied by the inverse document frequency of BM25 (Robertson and Zaragoza 2009, "The
# Probabilistic Relevance Framework", 3.2). A document's own configuration stems the question.
STATEMENT = """
WITH scope AS MATERIALIZED (
    SELECT id, config FROM knowledge_document WHERE collection_id = ANY(%(collections)s)
), total AS (
    SELECT count(*)::float8 AS chunks
    FROM knowledge_chunk JOIN scope ON scope.id = knowledge_chunk.document_id
), word AS MATERIALIZED (
    SELECT wording.place, configs.config, lexeme,
        ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS query
    FROM unnest(%(wordings)s::text[]) WITH ORDINALITY AS wording (text, place),
        (SELECT DISTINCT config FROM scope) AS configs,
        unnest(to_tsvector(configs.config::regconfig, wording.text))
), hit AS (
    SELECT word.place, chunk.id, ts_rank(%(weights)s::float4[], chunk.search, word.query) AS rank,
        count(*) OVER (PARTITION BY word.place, word.config, lexeme) AS chunks
    FROM word
        JOIN knowledge_chunk AS chunk ON chunk.search @@ word.query
        JOIN scope ON scope.id = chunk.document_id AND scope.config = word.config
), scored AS (
    SELECT place, hit.id,
        sum(rank * ln(1 + (total.chunks - hit.chunks + 0.5) / (hit.chunks + 0.5))) AS score
    FROM hit, total GROUP BY place, hit.id
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY place ORDER BY score DESC, id) AS number
    FROM scored
)
SELECT place, id FROM ranked WHERE number <= %(limit)s ORDER BY place, number
"""


def find(wordings: Sequence[str], *, collections: Sequence[int], limit: int) -> list[Ranking]:
    """Return per wording the ids of at most `limit` chunks, best first."""
    rankings: list[Ranking] = [[] for _ in wordings]
    with connection.cursor() as cursor:
        cursor.execute(
            STATEMENT,
            {
                "collections": list(collections),
                # PostgreSQL's text cannot hold NUL.
                "wordings": [wording.replace("\0", " ") for wording in wordings],
                "weights": WEIGHTS,
                "limit": limit,
            },
        )
        for place, chunk_id in cursor.fetchall():
            rankings[place - 1].append(chunk_id)
    return rankings
