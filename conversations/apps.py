"""Conversations app: hears when a turn ends."""

from importlib import import_module

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    """The Django app of the conversations."""

    name = "conversations"

    def ready(self) -> None:
        """Load the receiver, which needs the models and so can't be imported earlier."""
        import_module("conversations.turn_memory")
