"""Every API key gets a grant: what its user might do so far, it may go on doing."""

import django.db.models.deletion
from django.db import migrations, models

import conversations.grants


def grant_all(apps, schema_editor):
    """Give the scopes that being staff stood for; a key that is bound gets no `admin`."""
    Grant = apps.get_model("conversations", "Grant")
    for token in apps.get_model("knox", "AuthToken").objects.select_related("user"):
        grant, _ = Grant.objects.get_or_create(token=token)
        grant.scopes = ["chat"]
        if token.user.is_staff:
            grant.scopes += ["documents"] if grant.assistant_id else ["documents", "admin"]
        grant.save()


def forget_unbound(apps, schema_editor):
    """Leave what the former table can hold."""
    apps.get_model("conversations", "Grant").objects.filter(assistant=None).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0004_assistants"),
        ("knox", "0009_extend_authtoken_field"),
    ]

    operations = [
        migrations.AddField(
            model_name="grant",
            name="scopes",
            field=models.JSONField(default=conversations.grants.chat_alone),
        ),
        migrations.AddField(
            model_name="grant",
            name="collections",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name="grant",
            name="last_used",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="grant",
            name="assistant",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="grants",
                to="conversations.assistant",
            ),
        ),
        migrations.RunPython(grant_all, forget_unbound),
    ]
