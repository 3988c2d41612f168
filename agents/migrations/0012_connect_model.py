"""Who may connect providers of models."""

from django.db import migrations


class Migration(migrations.Migration):
    """A permission of its own: it decides where prompts and keys are sent."""

    dependencies = [("agents", "0011_functions")]

    operations = [
        migrations.AlterModelOptions(
            name="modelcall",
            options={
                "ordering": ("pk",),
                "permissions": (("connect_model", "Can connect providers of language models"),),
            },
        ),
    ]
