from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0001_tables'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='billing_case_id',
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name='conversation',
            name='refund_form',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="message",
            name="idempotency_key",
            field=models.CharField(blank=True, max_length=200, null=True),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                fields=("idempotency_key", "conversation"),
                condition=models.Q(idempotency_key__isnull=False),
                name="message_once_per_key",
            ),
        ),
    ]
