"""Preload: loads what agents need, so that the first question costs what the second does."""

import logging
from collections.abc import Collection
from typing import Any

import redis
from django.conf import settings
from django.db import Error, connection
from django.utils.module_loading import import_string

from agents.contract import REGISTRY
from agents.errors import AgentError
from agents.names import Role
from knowledge.errors import KnowledgeError

QUESTION = "How does this work?"
PAYLOAD = dict.fromkeys(("text", "text_eng", "canonical_question"), QUESTION) | {
    "enabled_routes": ["documentation"]
}
# In the order of a turn. They load models, weights, exemplars, prompts, and plans of the database.
LOADING_ROLES = (
    Role.LANG,
    Role.ESSENCE,
    Role.GUARDRAILS,
    Role.ROUTER,
    Role.SEARCH,
    Role.AUGMENTATION,
    Role.RESPONSE,
    Role.QUALITY,
)

log = logging.getLogger(__name__)


def preload(roles: Collection[Role]) -> None:
    """Let those of `roles` that load something answer a question once; nothing is kept of it.

    What cannot be loaded now is loaded when it is needed, or fails then: a worker that listens is
    worth more than one that waits for a server.
    """
    if roles and any(choice.model for choice in settings.MODELS.values()):
        # The client of the providers takes seconds to import and 40 MB, which are only taken here.
        import_string(settings.MODEL_TRANSPORT)
    payload: dict[str, Any] = dict(PAYLOAD)
    for role in LOADING_ROLES:
        if role not in roles:
            continue
        try:
            payload |= REGISTRY[role](payload)
        except (AgentError, KnowledgeError, Error, redis.RedisError) as error:
            log.warning("%s is not loaded before the first question: %s", role, error)
    connection.close()
