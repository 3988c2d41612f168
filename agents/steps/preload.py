"""Preload: loads what agents need before the first question waits for it."""

from collections.abc import Iterable

from django.conf import settings
from django.utils.module_loading import import_string

from agents.contract import REGISTRY
from agents.names import Role

QUESTION = "How does this work?"
PAYLOAD = dict.fromkeys(("text", "text_eng", "canonical_question"), QUESTION) | {
    "enabled_routes": ["documentation"]
}
# Those that load the embedding model, their exemplars or language profiles on first use.
LOADING_ROLES = {Role.LANG, Role.ESSENCE, Role.GUARDRAILS, Role.ROUTER}


def preload(roles: Iterable[Role]) -> None:
    """Let those of `roles` that load something look at a question once; nothing is kept of it."""
    if any(choice.model for choice in settings.MODELS.values()):
        # The client of the providers takes seconds to import and 40 MB, which are only taken here.
        import_string(settings.MODEL_TRANSPORT)
    for role in LOADING_ROLES & set(roles):
        REGISTRY[role](PAYLOAD)
