"""Assistant app: the wiring."""

from importlib import import_module

from django.apps import AppConfig


class AssistantConfig(AppConfig):
    """The Django app of commands and wiring."""

    name = "assistant"

    def ready(self) -> None:
        """Make the Celery app current, so that every process rings at the same door."""
        import_module("assistant.celery")
