"""Keyword level: chunks that share words with the question, by BM25.

In two phases, because a common word has more postings than there is time to read: the best
postings of each word, summed, name the candidates; those get their sum from all their words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge.postgres_text import storable
from knowledge.search import postings, sql
from knowledge.search.fusion import Scores
from knowledge.search.scope import Scope
from knowledge.search.sql import Query, Row, array_literal, one_transaction

# `word`: each configuration in scope stems the question; a word that one of them calls a stop word
# is none, or "the" would be the rarest word of a collection with a single French page. Positions
# are the parser's, which all configurations share.
# A list that is full says only that there are more; how many more the census knows.
LISTS = """
WITH wording AS (
    SELECT * FROM unnest(%(wordings)s::text[]) WITH ORDINALITY AS wording (text, place)
), stem AS (
    SELECT place, lexeme, count(*) OVER (PARTITION BY place, position) AS known
    FROM wording, unnest(%(configs)s::text[]) AS config,
        unnest(to_tsvector(config::regconfig, knowledge_plain(text))), unnest(positions) AS position
), word AS (
    SELECT place, lexeme AS term, ceil(count(*)::float8 / known) AS times
    FROM stem WHERE known = cardinality(%(configs)s::text[]) GROUP BY place, lexeme, known
    UNION
    SELECT place, lexeme, cardinality(positions)
    FROM wording, unnest(to_tsvector('simple', knowledge_bigrams(text)))
    WHERE 'simple' = ANY(%(configs)s::text[])
)
SELECT term, places, times, array_send(list.chunks), array_send(impacts), CASE
    WHEN cardinality(list.chunks) < %(read)s::int THEN NULL ELSE (
        SELECT common.chunks FROM knowledge_commonterm AS common
        WHERE common.collection_id = asked.collection AND common.term = word.term
    ) END
FROM (
    SELECT term, array_agg(place) AS places, array_agg(times) AS times FROM word GROUP BY term
) AS word, unnest(%(collections)s::int[]) AS asked (collection), LATERAL (
    SELECT array_agg(chunk_id) AS chunks, array_agg(impact) AS impacts FROM (
        SELECT chunk_id, impact FROM knowledge_posting AS posting
        WHERE posting.collection = asked.collection AND posting.term = word.term{condition}
        ORDER BY impact DESC LIMIT %(read)s::int
    ) AS best
) AS list
"""
# A subquery, so that it is asked of each posting in turn, and the list read no further than needed.
CONDITION = """
            AND (SELECT {condition} FROM knowledge_chunk JOIN knowledge_document AS document
                ON document.id = document_id WHERE knowledge_chunk.id = posting.chunk_id)"""
# `OFFSET 0` keeps the lookup of each candidate together: the planner would read all postings.
IMPACTS = """
SELECT array_send(array_agg(chunk_id)), array_send(array_agg(array_position(terms, term))),
    array_send(array_agg(impact))
FROM (SELECT %(terms)s::text[]) AS word (terms), unnest(%(chunks)s::bigint[]) AS candidate,
    LATERAL (
        SELECT chunk_id, term, impact FROM knowledge_posting
        WHERE chunk_id = candidate AND term = ANY(terms) OFFSET 0
    ) AS posting
"""


@dataclass(frozen=True)
class Words:
    """The words of the wordings, and the best postings of each."""

    terms: list[str]
    weights: Scores  # (wordings, terms); 0 where the wording does not say it
    chunks: NDArray[np.int64]  # of every posting its chunk,
    places: NDArray[np.intp]  # the place of its term,
    impacts: Scores  # and what the term is worth there

    def named(self, limit: int) -> list[int]:
        """Return the ids of the best `limit` chunks of each wording, as far as the lists tell."""
        chunks, owners = np.unique(self.chunks, return_inverse=True)
        chunk_ids: set[int] = set()
        for weights in self.weights:
            sums = np.bincount(owners, weights[self.places] * self.impacts, len(chunks))
            best = np.argsort(-sums, kind="stable")[:limit]
            chunk_ids.update(chunks[best[sums[best] > 0]].tolist())
        return sorted(chunk_ids)

    def query(self, chunks: Iterable[int]) -> Query:
        """Ask for what every word is worth in every one of the chunks."""
        return Query(IMPACTS, {"terms": self.terms, "chunks": array_literal(chunks)})

    def scores(self, chunks: Sequence[int], impacts: Query) -> Scores:
        """Return BM25 by wording and chunk, from what was asked; the ids are in order.

        As part of the most that any chunk could have, 0 to 1: a question of which half the words,
        weighed by how rare they are, stand nowhere is answered nowhere. An impact is at most 1, so
        what the words are worth together is that most. 0 for a chunk without any of the words.
        """
        table = np.zeros((len(self.terms), len(chunks)))
        ((of_chunks, places, impacts_bytes),) = impacts.rows()
        if of_chunks and len(chunks):
            of_rows, ids = sql.array(of_chunks, "bigint"), np.asarray(chunks)
            columns = np.minimum(np.searchsorted(ids, of_rows), len(ids) - 1)
            is_present = ids[columns] == of_rows  # the others were deleted meanwhile
            terms = sql.array(places, "integer") - 1
            table[terms[is_present], columns[is_present]] = sql.array(impacts_bytes, "real")[
                is_present
            ]
        best_possible = self.weights.sum(axis=1, keepdims=True)
        return np.asarray(self.weights @ table / np.where(best_possible > 0, best_possible, 1.0))


def ask(wordings: Sequence[str], scope: Scope) -> Query:
    """Ask for the best postings of the words."""
    filter_sql = CONDITION.format(condition=scope.condition) if scope.condition else ""
    values = scope.values | {
        "wordings": [storable(wording) for wording in wordings],
        "configs": scope.configs,
        "read": postings.READ,
    }
    return Query(LISTS.format(condition=filter_sql), values)


def parse_words(lists: Sequence[Row], wordings: int, chunks: int) -> Words:
    """Return the words of so many wordings, weighed for so many chunks in scope.

    By BM25's inverse document frequency, Robertson and Zaragoza 2009, "The Probabilistic Relevance
    Framework", 3.2, times how often the wording says the word.
    """
    terms = {term: row for row, term in enumerate(dict.fromkeys(term for term, *_ in lists))}
    times, frequency = np.zeros((wordings, len(terms))), np.zeros(len(terms))
    chunks_of = [sql.array(sent, "bigint") for _, _, _, sent, _, _ in lists]
    for (term, places, times_said, _, _, common), chunk_ids in zip(lists, chunks_of, strict=True):
        times[np.array(places) - 1, terms[term]] = times_said
        frequency[terms[term]] += max(len(chunk_ids), common or 0)
    rarity = np.log(1 + np.maximum(0.5, chunks - frequency + 0.5) / (frequency + 0.5))
    rows = np.array([terms[term] for term, *_ in lists], dtype=np.intp)
    return Words(
        terms=list(terms),
        weights=times * rarity,
        chunks=concatenate(chunks_of),
        places=np.repeat(rows, [len(each) for each in chunks_of]),
        impacts=concatenate([sql.array(sent, "real") for _, _, _, _, sent, _ in lists]),
    )


def concatenate(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the arrays as one; without any, an empty one."""
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=int)


def score_alone(wordings: Sequence[str], scope: Scope, limit: int) -> Scores:
    """Return BM25 of the best `limit` chunks of each wording; for measuring this level."""
    with one_transaction():
        lists = ask(wordings, scope)
    words = parse_words(lists.rows(), len(wordings), scope.chunks)
    chunk_ids = words.named(limit)
    with one_transaction():
        impacts = words.query(chunk_ids)
    return words.scores(chunk_ids, impacts)
