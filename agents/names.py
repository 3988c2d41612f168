"""Names: the roles, one word each; queue, task and settings are derived from it."""

from enum import StrEnum


class Role(StrEnum):
    """One agent. The word is also its task, queue, settings prefix, test file and metric label."""

    MANAGER = "manager"
    COMMAND = "command"
    LANG = "lang"
    TRANSLATION = "translation"
    ESSENCE = "essence"
    GUARDRAILS = "guardrails"
    ROUTER = "router"
    SEARCH = "search"
    EVALUATOR = "evaluator"
    AUGMENTATION = "augmentation"
    RESPONSE = "response"
    QUALITY = "quality"
    CLARIFICATION = "clarification"
    MEMORY = "memory"
    BILLING = "billing"
    ORCHESTRATOR = "orchestrator"
    EXTRACTOR = "extractor"
    CLASSIFIER = "classifier"
    REQUIREMENT_EXTRACTOR = "requirement_extractor"
    COMPLIANCE = "compliance"
    RISK_VERIFIER = "risk_verifier"
    CITATION_AUDITOR = "citation_auditor"
    GAP_SYNTHESIZER = "gap_synthesizer"
    FALLBACK = "fallback"

    @property
    def queue(self) -> str:
        """The Redis list the role's workers listen to; also the name of its Celery task."""
        return f"agents.{self.value}"

    @property
    def concurrency_setting(self) -> str:
        """Name of the environment variable that sets how many of its steps run at once."""
        return f"{self.name}_CONCURRENCY"


class Route(StrEnum):
    """A way a question can be answered; `ROUTES` enables them, fallback is always there."""

    DOCUMENTATION = "documentation"
    BILLING = "billing"
    ANALYSIS = "analysis"
    FALLBACK = "fallback"


# Who works out a part of an analysis; the orchestrator plans their work and writes the answer.
SPECIALISTS = (
    Role.EXTRACTOR,
    Role.CLASSIFIER,
    Role.REQUIREMENT_EXTRACTOR,
    Role.COMPLIANCE,
    Role.RISK_VERIFIER,
    Role.CITATION_AUDITOR,
    Role.GAP_SYNTHESIZER,
)
ANALYSTS = (Role.ORCHESTRATOR, *SPECIALISTS)
INSTANCES: dict[Role, int] = {
    Role.MANAGER: 1,
    Role.COMMAND: 1,
    Role.LANG: 1,
    Role.TRANSLATION: 2,
    Role.ESSENCE: 2,
    Role.GUARDRAILS: 2,
    Role.ROUTER: 2,
    Role.SEARCH: 2,
    Role.EVALUATOR: 2,
    Role.AUGMENTATION: 1,
    Role.RESPONSE: 2,
    Role.QUALITY: 1,
    Role.CLARIFICATION: 2,
    Role.MEMORY: 1,
    Role.BILLING: 2,
    **dict.fromkeys(ANALYSTS, 2),
    Role.FALLBACK: 1,
}

KIND: dict[Role, str] = {
    Role.MANAGER: "routing",
    Role.SEARCH: "retrieval",
    **dict.fromkeys(
        (Role.COMMAND, Role.LANG, Role.AUGMENTATION, Role.FALLBACK),
        "fast",
    ),
    **dict.fromkeys(
        (
            Role.TRANSLATION,
            Role.ESSENCE,
            Role.GUARDRAILS,
            Role.ROUTER,
            Role.EVALUATOR,
            Role.RESPONSE,
            Role.QUALITY,
            Role.CLARIFICATION,
            Role.MEMORY,
            Role.BILLING,
            *ANALYSTS,
        ),
        "LLM",
    ),
}
# Roles that work on one route alone: where it is closed, nobody needs to listen for them.
ONLY_ON_ROUTE: dict[Role, Route] = {
    Role.BILLING: Route.BILLING,
    **dict.fromkeys(ANALYSTS, Route.ANALYSIS),
}
# Who asks language models: the LLM roles, and what is done for documents and for search.
ENRICHMENT, EXPANSION = "enrichment", "expansion"
MODEL_ASKERS = (*(role.value for role in Role if KIND[role] == "LLM"), ENRICHMENT, EXPANSION)

# Who asks GEN_MODEL, by MODEL_PROFILE. What `balanced` leaves to rules costs most tokens for what
# rules do nearly as well; without a translation other languages than the documents' find little.
# Who analyses writes the answer: rules cannot judge.
ANSWERERS = frozenset({Role.RESPONSE.value, Role.BILLING.value, *(role.value for role in ANALYSTS)})
PROFILES: dict[str, frozenset[str]] = {
    "answer": ANSWERERS,
    "balanced": ANSWERERS | {Role.TRANSLATION.value, Role.QUALITY.value},
    "full": frozenset(MODEL_ASKERS),
}


class Status(StrEnum):
    """Where a turn stands. Only `RUNNING` can change into another."""

    RUNNING = "running"
    AWAITING_USER = "awaiting_user"
    WITH_STAFF = "with_staff"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
