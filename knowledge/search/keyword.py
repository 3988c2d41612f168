"""Keyword level: chunks that share words with the question, by BM25.

In two phases, because a common word has more postings than there is time to read: the best
postings of each word, summed, name the candidates; those get their sum from all their words.
"""

from collections.abc import Sequence

from knowledge import postings
from knowledge.search.scope import Scope
from knowledge.search.statements import array, rows

# `word`: each configuration in scope stems the question; a word that one of them calls a stop word
# is none, or "the" would be the rarest word of a collection with a single French page. Positions
# are the parser's, which all configurations share.
# `worth`: BM25's inverse document frequency, Robertson and Zaragoza 2009, "The Probabilistic
# Relevance Framework", 3.2, times how often the question says it. A list that is full says only
# that there are more; how many more the census knows. An impact is at most 1, so what the words are
# worth together is the `most` that a chunk could have.
# `OFFSET 0` keeps the lookup of each candidate together: the planner would read all postings.
STATEMENT = """
WITH wording AS (
    SELECT * FROM unnest(%(wordings)s::text[]) WITH ORDINALITY AS wording (text, place)
), stem AS (
    SELECT place, lexeme, count(*) OVER (PARTITION BY place, position) AS known
    FROM wording, unnest(%(configs)s::text[]) AS config,
        unnest(to_tsvector(config::regconfig, knowledge_plain(text))), unnest(positions) AS position
), word AS MATERIALIZED (
    SELECT place, lexeme AS term, ceil(count(*)::float8 / known) AS times
    FROM stem WHERE known = cardinality(%(configs)s::text[]) GROUP BY place, lexeme, known
    UNION
    SELECT place, lexeme, cardinality(positions)
    FROM wording, unnest(to_tsvector('simple', knowledge_bigrams(text)))
    WHERE 'simple' = ANY(%(configs)s::text[])
), list AS MATERIALIZED (
    SELECT term, asked.collection, chunks, impacts
    FROM (SELECT DISTINCT term FROM word) AS word,
        unnest(%(collections)s::int[]) AS asked (collection),
        LATERAL (
            SELECT array_agg(chunk_id) AS chunks, array_agg(impact) AS impacts FROM (
                SELECT chunk_id, impact FROM knowledge_posting AS posting
                WHERE posting.collection = asked.collection AND posting.term = word.term{condition}
                ORDER BY impact DESC LIMIT %(read)s::int
            ) AS best
        ) AS best
    WHERE chunks IS NOT NULL
), frequency AS (
    SELECT term, sum(CASE WHEN cardinality(chunks) < %(read)s::int THEN cardinality(chunks)
        ELSE greatest(cardinality(chunks), (
            SELECT common.chunks FROM knowledge_commonterm AS common
            WHERE common.collection_id = list.collection AND common.term = list.term
        )) END) AS chunks
    FROM list GROUP BY term
), worth AS MATERIALIZED (
    SELECT place, term, times * ln(
        1 + greatest(0.5, %(chunks)s::bigint - chunks + 0.5) / (chunks + 0.5)
    ) AS weight
    FROM word LEFT JOIN LATERAL (
        SELECT coalesce(sum(frequency.chunks), 0) AS chunks
        FROM frequency WHERE frequency.term = word.term
    ) AS seen ON true
), most AS (
    SELECT place, sum(weight) AS score FROM worth GROUP BY place
), named AS (
    SELECT chunk_id FROM (SELECT DISTINCT place FROM worth) AS asked, LATERAL (
        SELECT chunk_id
        FROM worth JOIN list USING (term), unnest(chunks, impacts) AS best (chunk_id, impact)
        WHERE worth.place = asked.place
        GROUP BY chunk_id ORDER BY sum(weight * impact) DESC, chunk_id LIMIT %(limit)s::int
    ) AS best
), candidate AS (
    SELECT chunk_id FROM named UNION SELECT unnest(%(others)s::bigint[])
)
SELECT place, chunk_id, sum(weight * impact) / most.score
FROM candidate, LATERAL (
    SELECT term, impact FROM knowledge_posting AS posting
    WHERE posting.chunk_id = candidate.chunk_id AND term = ANY(ARRAY(SELECT term FROM worth))
    OFFSET 0
) AS posting JOIN worth USING (term) JOIN most USING (place)
GROUP BY place, chunk_id, most.score
"""
# A subquery, so that it is asked of each posting in turn, and the list read no further than needed.
CONDITION = """
            AND (SELECT {condition} FROM knowledge_chunk JOIN knowledge_document AS document
                ON document.id = document_id WHERE knowledge_chunk.id = posting.chunk_id)"""


def find(
    wordings: Sequence[str], scope: Scope, *, limit: int, others: Sequence[int] = ()
) -> list[dict[int, float]]:
    """Return per wording chunk id → BM25, of the best `limit` chunks of each and of `others`.

    As part of the most that any chunk could have, 0 to 1: a question of which half the words,
    weighed by how rare they are, stand nowhere is answered nowhere. A chunk without any word of
    the wording is left out.
    """
    scores: list[dict[int, float]] = [{} for _ in wordings]
    condition = CONDITION.format(condition=scope.condition) if scope.condition else ""
    values = scope.values | {
        # PostgreSQL's text cannot hold NUL.
        "wordings": [wording.replace("\0", " ") for wording in wordings],
        "configs": scope.configs,
        "chunks": scope.chunks,
        "read": postings.READ,
        "limit": limit,
        "others": array(others),
    }
    for place, chunk_id, score in rows(STATEMENT.format(condition=condition), values):
        scores[place - 1][chunk_id] = score
    return scores
