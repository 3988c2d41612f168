import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.comparison
import pgvector.django.halfvec
import pgvector.django.indexes
from django.db import migrations, models

# A document and a section lie where the mean of their chunks does.
COPIES = """
INSERT INTO knowledge_chunkvector (chunk_id, collection_id, model, embedding)
SELECT vector.chunk_id, document.collection_id, vector.model, vector.embedding::halfvec
FROM knowledge_vector AS vector
    JOIN knowledge_chunk AS chunk ON chunk.id = vector.chunk_id
    JOIN knowledge_document AS document ON document.id = chunk.document_id;
INSERT INTO knowledge_sectionvector (section_id, collection_id, model, embedding)
SELECT chunk.section_id, vector.collection_id, vector.model,
    l2_normalize(avg(vector.embedding::vector))::halfvec
FROM knowledge_chunkvector AS vector JOIN knowledge_chunk AS chunk ON chunk.id = vector.chunk_id
GROUP BY chunk.section_id, vector.collection_id, vector.model;
INSERT INTO knowledge_documentvector (document_id, collection_id, model, embedding)
SELECT chunk.document_id, vector.collection_id, vector.model,
    l2_normalize(avg(vector.embedding::vector))::halfvec
FROM knowledge_chunkvector AS vector JOIN knowledge_chunk AS chunk ON chunk.id = vector.chunk_id
GROUP BY chunk.document_id, vector.collection_id, vector.model;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0003_sections"),
    ]

    operations = [
        migrations.CreateModel(
            name="ChunkVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
            ],
        ),
        migrations.CreateModel(
            name="DocumentVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
            ],
        ),
        migrations.CreateModel(
            name="SectionVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
            ],
        ),
        migrations.AddField(
            model_name="chunkvector",
            name="chunk",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="vectors",
                to="knowledge.chunk",
            ),
        ),
        migrations.AddField(
            model_name="chunkvector",
            name="collection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="knowledge.collection",
            ),
        ),
        migrations.AddField(
            model_name="documentvector",
            name="collection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="knowledge.collection",
            ),
        ),
        migrations.AddField(
            model_name="documentvector",
            name="document",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="vectors",
                to="knowledge.document",
            ),
        ),
        migrations.AddField(
            model_name="sectionvector",
            name="collection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="knowledge.collection",
            ),
        ),
        migrations.AddField(
            model_name="sectionvector",
            name="section",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="vectors",
                to="knowledge.section",
            ),
        ),
        migrations.AddConstraint(
            model_name="chunkvector",
            constraint=models.UniqueConstraint(
                fields=("chunk", "model"), name="chunk_vector_once_per_model"
            ),
        ),
        migrations.AddConstraint(
            model_name="documentvector",
            constraint=models.UniqueConstraint(
                fields=("document", "model"), name="document_vector_once_per_model"
            ),
        ),
        migrations.AddConstraint(
            model_name="sectionvector",
            constraint=models.UniqueConstraint(
                fields=("section", "model"), name="section_vector_once_per_model"
            ),
        ),
        migrations.RunSQL(COPIES, migrations.RunSQL.noop),
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="chunkvector",
            index=pgvector.django.indexes.HnswIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.comparison.Cast(
                        "embedding", pgvector.django.halfvec.HalfVectorField(dimensions=384)
                    ),
                    name="halfvec_cosine_ops",
                ),
                condition=models.Q(("model", "all-MiniLM-L6-v2")),
                ef_construction=128,
                name="chunk_by_cosine_minilm",
            ),
        ),
        migrations.AddIndex(
            model_name="documentvector",
            index=pgvector.django.indexes.HnswIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.comparison.Cast(
                        "embedding", pgvector.django.halfvec.HalfVectorField(dimensions=384)
                    ),
                    name="halfvec_cosine_ops",
                ),
                condition=models.Q(("model", "all-MiniLM-L6-v2")),
                ef_construction=128,
                name="document_by_cosine_minilm",
            ),
        ),
        migrations.AddIndex(
            model_name="sectionvector",
            index=pgvector.django.indexes.HnswIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.comparison.Cast(
                        "embedding", pgvector.django.halfvec.HalfVectorField(dimensions=384)
                    ),
                    name="halfvec_cosine_ops",
                ),
                condition=models.Q(("model", "all-MiniLM-L6-v2")),
                ef_construction=128,
                name="section_by_cosine_minilm",
            ),
        ),
        migrations.DeleteModel(name="Vector"),
    ]
