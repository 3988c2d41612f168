import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from knowledge import postings

# PostgreSQL's parser keeps addresses, paths and names with dots whole, and nobody asks for them
# whole; version numbers stay. Where the database has no locale of its own it also takes punctuation
# outside ASCII for letters: “word” would be found by “word” only.
PLAIN = r"""
CREATE FUNCTION knowledge_plain(words text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(
    regexp_replace(words, '[/\\_@:=&?#%~|\u00a0-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf'
        '\u2000-\u206f\u2190-\u2bff\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40'
        '\uff5b-\uff65]', ' ', 'g'),
    '(?<=[[:alpha:]])\.(?=[[:alpha:]])', ' ', 'g')
"""
# Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer write words without a border between them
# or with particles attached: two neighbouring characters are the nearest thing to a word.
BIGRAMS = r"""
CREATE FUNCTION knowledge_bigrams(words text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT string_agg(substr(run[1], place, 2), ' ')
    FROM regexp_matches(words,
            '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff'
            '\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+', 'g') AS run,
        generate_series(1, greatest(length(run[1]) - 1, 1)) AS place
)
"""
# The words of a text as its configuration stems them.
WORDS = """
CREATE FUNCTION knowledge_words(config text, words text) RETURNS tsvector
LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_tsvector(config::regconfig, CASE config
    WHEN 'simple' THEN concat_ws(' ', knowledge_plain(words), knowledge_bigrams(words))
    ELSE knowledge_plain(words)
END)
"""
# The widest column first, because of what alignment costs: there are ninety rows to a chunk.
TABLES = """
CREATE TABLE knowledge_posting (
    chunk_id bigint NOT NULL,
    collection integer NOT NULL,
    impact real NOT NULL,
    term text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);
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



def fill(apps, schema_editor):
    """Write what there is, and make the indexes; as the program of today reads it."""
    postings.rebuild()


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0007_jobs"),
    ]

    operations = [
        migrations.RunSQL(PLAIN, "DROP FUNCTION knowledge_plain"),
        migrations.RunSQL(BIGRAMS, "DROP FUNCTION knowledge_bigrams"),
        migrations.RunSQL(WORDS, "DROP FUNCTION knowledge_words"),
        migrations.RunSQL(
            TABLES, "DROP TABLE knowledge_posting, knowledge_commonterm, knowledge_census"
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Census",
                    fields=[
                        (
                            "collection",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                primary_key=True,
                                related_name="census",
                                serialize=False,
                                to="knowledge.collection",
                            ),
                        ),
                        (
                            "configs",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        ("chunks", models.PositiveIntegerField(null=True)),
                        ("newest", models.BigIntegerField(default=0)),
                    ],
                ),
                migrations.CreateModel(
                    name="CommonTerm",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "collection",
                                "term",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("term", models.TextField()),
                        ("chunks", models.PositiveIntegerField()),
                        (
                            "collection",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="knowledge.collection",
                            ),
                        ),
                    ],
                ),
                migrations.CreateModel(
                    name="Posting",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "chunk",
                                "term",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("collection", models.IntegerField()),
                        ("impact", models.FloatField()),
                        ("term", models.TextField()),
                        (
                            "chunk",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="knowledge.chunk",
                            ),
                        ),
                    ],
                ),
            ]
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="chunk", name="chunk_by_words"),
        migrations.RemoveField(model_name="chunk", name="search"),
    ]
