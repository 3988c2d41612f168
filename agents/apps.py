"""Agents app: imports every agent at start, so that a missing or broken one stops the start.

Models cannot be imported before Django is ready, so what needs them is imported by name there.
"""

from importlib import import_module

from django.apps import AppConfig
from django.core.checks import register

from agents.attributes import REDUCERS
from agents.contract import REGISTRY, refuse_conflicts, refuse_unfit
from agents.names import ANALYSTS, KIND, SPECIALISTS, Role
from agents.routing import PARALLEL_ROLES
from prompts.checks import prompts_fit

FOLDERS: dict[str, tuple[Role, ...]] = {
    "agents.ending": (Role.COMMAND, Role.CLARIFICATION, Role.MEMORY, Role.FALLBACK),
    "agents.intake": (Role.LANG, Role.TRANSLATION, Role.ESSENCE, Role.GUARDRAILS, Role.ROUTER),
    "agents.documentation": (
        Role.SEARCH,
        Role.EVALUATOR,
        Role.AUGMENTATION,
        Role.RESPONSE,
        Role.QUALITY,
    ),
    "agents.support": (Role.BILLING,),
    "agents.analysis": ANALYSTS,
}
# What knowledge lets a model do, and what agents do when documents change.
HOOKS = (
    "agents.library.descriptions",
    "agents.library.graph_extraction",
    "agents.library.query_expansion",
    "agents.llm.journal",
)
# Declare prompts, which are checked, and no role imports them.
PROMPTS = (
    "agents.llm.trial",
    "agents.llm.speed",
    "agents.tools.loop",
)
# Declare the tools that roles may have called.
TOOLS = (
    "agents.analysis.document_tools",
    "agents.analysis.comparison_tools",
    "agents.support.billing_tools",
)


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
        refuse_unfit(REDUCERS)
        refuse_conflicts(PARALLEL_ROLES)
        refuse_conflicts(SPECIALISTS)
        for name in HOOKS:
            import_module(name).register()
        for name in (*PROMPTS, *TOOLS):
            import_module(name)
        register(prompts_fit)
