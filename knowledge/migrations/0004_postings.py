"""The tables of postings, made again as models cannot say it: they are empty still.

No id, four bytes for a number, words compared byte by byte, and rows that the database deletes
itself. The widest column comes first, because of what alignment costs: there are ninety rows to a
chunk. `knowledge.search.postings.rebuild` makes the same indexes and keys anew.
"""

from django.db import migrations

TABLES = """
DROP TABLE knowledge_posting, knowledge_commonterm, knowledge_census;
CREATE TABLE knowledge_posting (
    chunk_id bigint NOT NULL,
    collection integer NOT NULL,
    impact real NOT NULL,
    term text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE INDEX posting_by_impact ON knowledge_posting (collection, term, impact DESC)
    INCLUDE (chunk_id);
ALTER TABLE knowledge_posting
    ADD CONSTRAINT posting_once PRIMARY KEY (chunk_id, term) INCLUDE (impact),
    ADD CONSTRAINT posting_of_chunk FOREIGN KEY (chunk_id)
        REFERENCES knowledge_chunk ON DELETE CASCADE;
CREATE TABLE knowledge_commonterm (
    collection_id bigint NOT NULL REFERENCES knowledge_collection ON DELETE CASCADE,
    chunks integer NOT NULL,
    term text COLLATE "C" NOT NULL,
    PRIMARY KEY (collection_id, term)
);
CREATE TABLE knowledge_census (
    collection_id bigint PRIMARY KEY REFERENCES knowledge_collection ON DELETE CASCADE,
    newest bigint NOT NULL,
    chunks integer,
    configs text[] NOT NULL
);
"""


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0003_tables")]
    operations = [migrations.RunSQL(TABLES, migrations.RunSQL.noop)]
