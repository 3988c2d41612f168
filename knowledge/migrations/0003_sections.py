import django.db.models.deletion
from django.db import migrations, models

# A section is one heading path within a document, in the order of its first chunk.
SECTIONS = """
INSERT INTO knowledge_section (document_id, number, path)
SELECT document_id, row_number() OVER (PARTITION BY document_id ORDER BY min(number)), path
FROM knowledge_chunk GROUP BY document_id, path
"""
CHUNKS = """
UPDATE knowledge_chunk AS chunk SET section_id = section.id
FROM knowledge_section AS section
WHERE section.document_id = chunk.document_id AND section.path = chunk.path
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0002_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="Section",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("path", models.JSONField(blank=True, default=list)),
            ],
            options={
                "ordering": ("document", "number"),
            },
        ),
        migrations.AddField(
            model_name="section",
            name="document",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="sections",
                to="knowledge.document",
            ),
        ),
        migrations.AddConstraint(
            model_name="section",
            constraint=models.UniqueConstraint(
                fields=("document", "number"), name="section_once_per_number"
            ),
        ),
        migrations.RenameField(model_name="chunk", old_name="section", new_name="path"),
        migrations.AddField(
            model_name="chunk",
            name="section",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="chunks",
                to="knowledge.section",
            ),
        ),
        migrations.RunSQL(SECTIONS, migrations.RunSQL.noop),
        migrations.RunSQL(CHUNKS, migrations.RunSQL.noop),
        # Rows with pending checks of their new key cannot be altered.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="chunk",
            name="section",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="chunks",
                to="knowledge.section",
            ),
        ),
        migrations.RemoveField(model_name="chunk", name="path"),
        migrations.AddField(
            model_name="chunk",
            name="page",
            field=models.PositiveIntegerField(
                blank=True, help_text="Page or slide it begins on, where there are any.", null=True
            ),
        ),
    ]
