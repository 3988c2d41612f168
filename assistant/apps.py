"""Assistant app: the wiring."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings

from assistant.logs import log_uncaught


class AssistantConfig(AppConfig):
    """The Django app of commands and wiring."""

    name = "assistant"

    def ready(self) -> None:
        """Make the Celery app current, so that every process rings at the same door."""
        import_module("assistant.celery")
        if settings.LOG_FORMAT == "json":
            log_uncaught()
        if settings.SENTRY_DSN:
            import_module("assistant.error_reports").start()
