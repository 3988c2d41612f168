"""Knowledge: the documents an organisation owns, and the passages found in them."""

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """The knowledge app."""

    name = "knowledge"
    default_auto_field = "django.db.models.BigAutoField"
