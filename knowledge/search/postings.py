"""Postings: the words of every chunk with what each is worth, written beside the chunks.

A search reads only the best postings of each word, so a posting must be comparable with those of
other documents without knowing them: lengths are compared with a constant, and how rare a word is
enters when it is asked for. No document's rows change because another one came.
"""

from django.db import connection, transaction

from knowledge.models import Collection, Document

FORMULA = {
    # A word's weight by where it stands; one that stands in several places has them added up.
    "title": 3.0,
    "headings": 2.0,
    "keywords": 1.0,
    "text": 1.0,
    # BM25, Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", 3.4 to 3.6. Chunks
    # are of like length, because the window bounds them: b is lower than the usual 0.75.
    "saturation": 1.5,  # k1
    "normalisation": 0.4,  # b
    "usual": 95.0,  # weighted words of a chunk that fits the local model, stop words left out
}

# Postings of a word that a search reads of each collection, best first.
READ = 300
# A collection is counted anew when this part of it has changed.
STALE = 0.05

# tf / (tf + k1 · (1 - b + b · length / usual length)), the frequencies weighted by field. The text
# of a JSON list is its words and punctuation.
WRITE = """
INSERT INTO knowledge_posting (chunk_id, collection, impact, term)
SELECT chunk.id, document.collection_id, frequency / (frequency + %(saturation)s * (
        1 - %(normalisation)s + %(normalisation)s * length / %(usual)s
    )), lexeme
FROM knowledge_document AS document
    JOIN knowledge_section AS section ON section.document_id = document.id
    JOIN knowledge_chunk AS chunk ON chunk.section_id = section.id,
    LATERAL (
        SELECT lexeme, frequency, sum(frequency) OVER () AS length
        FROM unnest(
                setweight(knowledge_words(config, title), 'A')
                || setweight(knowledge_words(config, path::text || ' ' || crumbs::text), 'B')
                || setweight(knowledge_words(config, chunk.keywords::text), 'C')
                || knowledge_words(config, text)
            ), LATERAL (
                SELECT %(title)s * cardinality(array_positions(weights, 'A'))
                    + %(headings)s * cardinality(array_positions(weights, 'B'))
                    + %(keywords)s * cardinality(array_positions(weights, 'C'))
                    + %(text)s * cardinality(array_positions(weights, 'D')) AS frequency
            ) AS counted
    ) AS word
WHERE %(document)s IS NULL OR document.id = %(document)s
"""

# Nothing is locked unless there is something to add: uploads side by side would wait in line.
KNOW_CONFIGS = """
INSERT INTO knowledge_census (collection_id, configs, newest)
SELECT collection_id, array_agg(DISTINCT config), 0 FROM knowledge_document AS document
WHERE (%(document)s IS NULL OR document.id = %(document)s) AND NOT EXISTS (
    SELECT FROM knowledge_census AS known
    WHERE known.collection_id = document.collection_id AND document.config = ANY(known.configs)
)
GROUP BY collection_id
ON CONFLICT (collection_id) DO UPDATE SET configs = ARRAY(
    SELECT unnest(knowledge_census.configs) UNION SELECT unnest(excluded.configs) ORDER BY 1
)
"""
# Fifty times faster than keeping them up to date row by row, when all rows are written.
# A table with rows whose keys are still to be checked cannot be altered.
BARE = """
SET CONSTRAINTS ALL IMMEDIATE;
DROP INDEX IF EXISTS posting_by_impact;
ALTER TABLE knowledge_posting DROP CONSTRAINT IF EXISTS posting_of_chunk,
    DROP CONSTRAINT IF EXISTS posting_once;
TRUNCATE knowledge_posting, knowledge_commonterm, knowledge_census;
"""
INDEXES = """
CREATE INDEX posting_by_impact ON knowledge_posting (collection, term, impact DESC)
    INCLUDE (chunk_id);
ALTER TABLE knowledge_posting
    ADD CONSTRAINT posting_once PRIMARY KEY (chunk_id, term) INCLUDE (impact),
    ADD CONSTRAINT posting_of_chunk FOREIGN KEY (chunk_id)
        REFERENCES knowledge_chunk ON DELETE CASCADE;
"""
LAST = "SELECT chunks, newest FROM knowledge_census WHERE collection_id = %s"
COUNT = """
SELECT count(*), count(*) FILTER (WHERE chunk.id > %(newest)s), coalesce(max(chunk.id), 0)
FROM knowledge_document AS document JOIN knowledge_chunk AS chunk ON chunk.document_id = document.id
WHERE document.collection_id = %(collection)s
"""
FORGET_TERMS = "DELETE FROM knowledge_commonterm WHERE collection_id = %(collection)s"
COUNT_TERMS = """
INSERT INTO knowledge_commonterm (collection_id, term, chunks)
SELECT collection, term, count(*) FROM knowledge_posting
WHERE collection = %(collection)s GROUP BY collection, term HAVING count(*) > %(most)s
"""
# As if they had never been counted: only what came before the last time was.
UNCOUNT_TERMS = """
UPDATE knowledge_commonterm AS common SET chunks = greatest(common.chunks - going.chunks, 0)
FROM (
    SELECT collection, term, count(*) AS chunks
    FROM knowledge_chunk AS chunk JOIN knowledge_posting AS posting ON chunk_id = chunk.id
        JOIN knowledge_census AS census ON collection_id = collection AND chunk.id <= newest
    WHERE document_id = ANY(%(documents)s) GROUP BY collection, term
) AS going
WHERE common.collection_id = going.collection AND common.term = going.term
"""
UNCOUNT = """
UPDATE knowledge_census AS census SET chunks = greatest(census.chunks - going.chunks, 0)
FROM (
    SELECT collection_id, count(*) AS chunks
    FROM knowledge_chunk AS chunk JOIN knowledge_document AS document ON document.id = document_id
        JOIN knowledge_census AS known USING (collection_id)
    WHERE document_id = ANY(%(documents)s) AND chunk.id <= newest GROUP BY collection_id
) AS going
WHERE census.collection_id = going.collection_id
"""
TAKE_TURNS = """
SELECT pg_advisory_xact_lock(hashtextextended('census', collection_id))
FROM (
    SELECT DISTINCT collection_id FROM knowledge_document
    WHERE id = ANY(%(documents)s) ORDER BY collection_id
) AS counted
"""
KEEP = """
INSERT INTO knowledge_census (collection_id, chunks, newest, configs)
VALUES (%(collection)s, %(chunks)s, %(newest)s, '{}')
ON CONFLICT (collection_id) DO UPDATE SET chunks = excluded.chunks, newest = excluded.newest
"""


def write(document: Document) -> None:
    """Insert the postings of the document's chunks, which must be new, in one statement.

    In the caller's transaction. Those of deleted chunks need no call: the database deletes them.
    """
    write_postings(document.pk)


def rebuild() -> None:
    """Write all postings and counts anew; searches wait for it, some minutes per 100,000."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(BARE)
        write_postings(None)
        cursor.execute(INDEXES)
        for collection in Collection.objects.values_list("pk", flat=True):
            refresh(collection)


def uncount(documents: list[str]) -> None:
    """Take the chunks of documents with these ids, about to be deleted, off the counts.

    In the caller's transaction. Costs what deleting their postings does at most, however large the
    collection is; to count it anew after every single document would not.
    """
    with connection.cursor() as cursor:
        for statement in (TAKE_TURNS, UNCOUNT_TERMS, UNCOUNT):
            cursor.execute(statement, {"documents": documents})


def write_postings(document: str | None) -> None:
    """Write the postings of the document, or of all, and know their configurations."""
    with connection.cursor() as cursor:
        for statement in (WRITE, KNOW_CONFIGS):
            cursor.execute(statement, FORMULA | {"document": document})


def know_configs(document: str) -> None:
    """Let searches of its collection know the configuration of a document that came from elsewhere.

    In the caller's transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(KNOW_CONFIGS, {"document": document})


def refresh(collection: int, *, force: bool = False) -> bool:
    """Count the chunks and the common words of the collection; return whether that was due.

    Due when a twentieth of its chunks came or went since the last time; `collection` is its id.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # Two that end at once take turns; the second finds nothing to do.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('census', %s))", [collection])
        cursor.execute(LAST, [collection])
        counted, newest = cursor.fetchone() or (None, 0)
        values = {"collection": collection, "newest": newest, "most": READ // 2}
        cursor.execute(COUNT, values)
        chunks, new_chunks, newest = cursor.fetchone()
        changed = new_chunks + (counted or 0) + new_chunks - chunks  # what came, and what went
        if not force and counted is not None and changed <= STALE * counted:
            return False
        for statement in (FORGET_TERMS, COUNT_TERMS, KEEP):
            cursor.execute(statement, values | {"chunks": chunks, "newest": newest})
        return True
