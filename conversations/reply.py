"""Reply: the one object that chat clients get for a turn, whichever way they ask."""

from typing import Any

from agents.models import Envelope
from agents.names import Status
from agents.usage import of_turn
from conversations.memory import last_agent
from conversations.models import Conversation

EXCERPT = (
    "stage",
    "canonical_question",
    "context_type",
    "search_quality",
    "search_rounds",
    "search_error",
    "quality_decision",
    "quality_score",
    "quality_returns",
    "clarification_reason",
    "clarification_type",
    "limitations",
)


def reply(envelope: Envelope) -> dict[str, Any]:
    """Return the turn as `POST /api/chat/` shows it (SPEC section 14); lists may be empty.

    `confidence` is 0..1 or None when no answer was generated. `usage` counts steps, seconds,
    model calls made and spared, and tokens; `cost` is in US dollars, None when not known.
    """
    payload = envelope.payload
    answered = envelope.status == Status.COMPLETED
    conversation = Conversation.objects.filter(pk=envelope.conversation_id).first()
    return {
        "session_id": conversation.session if conversation else "",
        "turn_id": str(envelope.pk),
        "status": envelope.status,
        "reply": payload.get("response", "") if envelope.ended else "",
        "route": payload.get("route"),
        "last_agent": last_agent(envelope),
        "language": payload.get("language"),
        "sources": payload.get("sources_used", []) if answered else [],
        "citations": payload.get("citations_used", []) if answered else [],
        "suggested_actions": payload.get("suggested_actions", []),
        "used_tools": payload.get("used_tools", []),
        "confidence": payload.get("generation_confidence") if answered else None,
        "mode": payload.get("mode", "extractive"),
        "error_id": envelope.error_id or None,
        "usage": {
            "steps": envelope.process_count,
            "seconds": round((envelope.update_ts - envelope.create_ts).total_seconds(), 3),
            **of_turn(envelope.pk),
        },
        "state_excerpt": {name: payload[name] for name in EXCERPT if name in payload},
    }
