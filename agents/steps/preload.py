"""Warmth: loads what agents need before the first question waits for it."""

from collections.abc import Iterable

from django.conf import settings
from django.utils.module_loading import import_string

from agents.contract import REGISTRY
from agents.names import Role

QUESTION = "How does this work?"
# Those that load the embedding model, their exemplars or language profiles on first use.
LOADING = (Role.LANG, Role.ESSENCE, Role.GUARDRAILS, Role.ROUTER)


def warm(roles: Iterable[Role]) -> None:
    """Let those of `roles` that load something look at a question once; nothing is kept of it."""
    if any(choice.model for choice in settings.MODELS.values()):
        # The client of the providers takes seconds to import and 40 MB, which are only taken here.
        import_string(settings.MODEL_TRANSPORT)
    said = dict.fromkeys(("text", "text_eng", "canonical_question"), QUESTION)
    for role in set(LOADING) & set(roles):
        REGISTRY[role](said | {"enabled_routes": ["documentation"]})
