"""Claim by order: a step is claimed when it is its turn, never by its number."""

from importlib import import_module

from django.db import migrations

by_number = import_module("agents.migrations.0004_steps_by_models")


class Migration(migrations.Migration):
    """Without the function that claimed a step by its number: bells name none."""

    dependencies = [("agents", "0007_fair_order")]
    operations = [migrations.RunSQL("DROP FUNCTION agents_claim", by_number.CLAIM)]
