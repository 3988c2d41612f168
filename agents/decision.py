"""Decision: what the manager says happens next to a turn, and at which stage it waits then."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agents.names import Role, Status
from agents.words import Phrase

Payload = Mapping[str, Any]


class Stage(StrEnum):
    """What the turn was waiting for when the manager is called."""

    START = "start"
    COMMAND = "command"
    LANG = "lang"
    TRANSLATION = "translation"
    ESSENCE = "essence"
    INTAKE = "intake"
    GUARDRAILS = "guardrails"
    ROUTER = "router"
    SEARCH = "search"
    EVALUATOR = "evaluator"
    AUGMENTATION = "augmentation"
    RESPONSE = "response"
    QUALITY = "quality"
    CLARIFICATION = "clarification"
    BILLING = "billing"
    ORCHESTRATOR = "orchestrator"
    SPECIALISTS = "specialists"
    SYNTHESIS = "synthesis"
    FALLBACK = "fallback"


# What is forgotten when a question is declined, and when no answer stands.
RESULTS_OF_INTAKE = ("search_results", "search_context", "search_stats", "search_quality", "route")
ANSWER = (
    "response",
    "citations_used",
    "sources_used",
    "quality_score",
    "answer_worth",
    "generation_confidence",
    "validation_result",
    "answer_form",
    "suggested_actions",
)


@dataclass(frozen=True)
class Decision:
    """What happens next: `to` these roles while the turn waits at `stage`, or its end.

    `notes` are bookkeeping for the payload; a note of None forgets the attribute.
    """

    stage: Stage
    to: tuple[Role, ...] = ()
    ends: Status | None = None
    phrase: Phrase | None = None  # the sentence the turn ends with, when no agent wrote one
    notes: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None  # that the turn may take from its beginning; None: as before

    def record(self) -> dict[str, Any]:
        """Return the decision as JSON values."""
        return {"stage": self.stage, "to": self.to, "ends": self.ends, "notes": self.notes}


def send(role: Role, **notes: Any) -> Decision:
    """Send a turn to one role, at the stage of its word."""
    return Decision(Stage(role.value), (role,), notes=notes)


def end(stage: Stage, status: Status, phrase: Phrase | None = None, **notes: Any) -> Decision:
    """End a turn, with a sentence where no agent wrote one."""
    return Decision(stage, ends=status, phrase=phrase, notes=notes)


def clarify(payload: Payload, *roles: Role) -> Decision | None:
    """Pass on the request of the first of `roles` that asked the user for something."""
    requests = payload.get("clarification_requests", {})
    for role in roles:
        if role in requests:
            request = requests[role]
            notes = {
                "needs_clarification": True,
                "clarification_reason": request["reason"],
                "clarification_message": request["message"],
            }
            if role is Role.GUARDRAILS:
                notes |= dict.fromkeys((*RESULTS_OF_INTAKE, *ANSWER))
            if role in {Role.RESPONSE, Role.QUALITY}:
                notes |= dict.fromkeys(ANSWER)
            return send(Role.CLARIFICATION, **notes)
    return None
