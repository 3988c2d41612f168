"""Agents app: imports every agent at start, so that a missing or broken one stops the start."""

from importlib import import_module

from django.apps import AppConfig

from agents.contract import REGISTRY, refuse_conflicts
from agents.names import KIND, Role
from agents.routing import TOGETHER

FOLDERS: dict[str, tuple[Role, ...]] = {
    "agents": (Role.COMMAND, Role.CLARIFICATION, Role.MEMORY, Role.FALLBACK),
    "agents.intake": (Role.LANG, Role.TRANSLATION, Role.ESSENCE, Role.GUARDRAILS, Role.ROUTER),
    "agents.documentation": (
        Role.SEARCH,
        Role.EVALUATOR,
        Role.AUGMENTATION,
        Role.RESPONSE,
        Role.QUALITY,
    ),
}


class AgentsConfig(AppConfig):
    """The Django app of the agents."""

    name = "agents"

    def ready(self) -> None:
        """Fill the registry; one module per role, found by its word."""
        for folder, roles in FOLDERS.items():
            for role in roles:
                module = import_module(f"{folder}.{role}")
                if REGISTRY.get(role) is None:
                    raise LookupError(f"{module.__name__} declares no agent for the role {role}")
        for role in Role:
            if KIND[role] == "LLM" and REGISTRY[role].work is None:
                raise LookupError(f"{role} has no way to work without a model")
        refuse_conflicts(TOGETHER)
