"""Conversations app: hears when a turn or a migration ends, and what becomes of refund cases."""

from importlib import import_module

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ConversationsConfig(AppConfig):
    """The Django app of the conversations."""

    name = "conversations"

    def ready(self) -> None:
        """Load receivers and the task, which need the models and so can't be imported earlier."""
        for name in ("turn_memory", "case_messages", "gaps"):
            import_module(f"conversations.{name}")
        # Of our apps, the last that is migrated: by then there are all permissions.
        post_migrate.connect(import_module("conversations.staff_groups").offer, sender=self)
