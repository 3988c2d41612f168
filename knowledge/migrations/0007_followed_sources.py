"""Repositories and sitemaps that are read again on a schedule."""

import datetime
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('knowledge', '0006_shelves'),
    ]

    operations = [
        migrations.AlterField(
            model_name='item',
            name='kind',
            field=models.CharField(choices=[('file', 'File'), ('url', 'Url'), ('git', 'Git'), ('upload', 'Upload'), ('stored', 'Stored')], max_length=16),
        ),
        migrations.AlterField(
            model_name='item',
            name='location',
            field=models.TextField(blank=True, help_text='Path on the server, URL, repository, or document.'),
        ),
        migrations.CreateModel(
            name='Source',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('git', 'Git'), ('sitemap', 'Sitemap')], max_length=16)),
                ('address', models.CharField(help_text='Without a user name or password.', max_length=900)),
                ('branch', models.CharField(blank=True, help_text='Of a repository; empty: the one it names itself.', max_length=200)),
                ('folder', models.CharField(blank=True, help_text='Of a repository; empty: all of it.', max_length=500)),
                ('patterns', models.JSONField(blank=True, default=list, help_text='Names of files such as *.md; none: all known formats.')),
                ('every', models.DurationField(default=datetime.timedelta(days=1), help_text='How often it is read again, five minutes at least.', validators=[django.core.validators.MinValueValidator(datetime.timedelta(seconds=300))])),
                ('paused', models.BooleanField(default=False, help_text='Read only when somebody asks for it.')),
                ('is_local', models.BooleanField(default=False, editable=False)),
                ('due', models.DateTimeField(default=django.utils.timezone.now, help_text='When it is read next.')),
                ('created', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('collection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='followed_sources', to='knowledge.collection')),
            ],
            options={
                'ordering': ('collection', 'address'),
            },
        ),
        migrations.CreateModel(
            name='FetchedPage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('origin', models.CharField(max_length=1000)),
                ('etag', models.CharField(blank=True, max_length=300)),
                ('last_modified', models.CharField(blank=True, max_length=100)),
                ('lastmod', models.CharField(blank=True, help_text='As the sitemap has it.', max_length=40)),
                ('source', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pages', to='knowledge.source')),
            ],
        ),
        migrations.AddField(
            model_name='ingest',
            name='source',
            field=models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='knowledge.source'),
        ),
        migrations.AddConstraint(
            model_name='source',
            constraint=models.UniqueConstraint(fields=('collection', 'address', 'branch', 'folder'), name='source_once_per_collection'),
        ),
        migrations.AddConstraint(
            model_name='fetchedpage',
            constraint=models.UniqueConstraint(fields=('source', 'origin'), name='page_once_per_source'),
        ),
    ]
