"""Answer: how long a question waits for models, and what an equal question costs again.

Real workers ask a model server that takes the same time for every call. What the calls of a turn
take one after another is what the turn is measured by.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents import envelopes
from agents.models import Envelope, ModelCall
from agents.steps import events
from assistant.lab.model_server import Asked, ModelServer

PATIENCE_SECONDS = 120.0
ROUNDS = ("first", "second")
# Of the documentation, in the words of who would ask; each is asked twice.
SUBJECTS = (
    "set a model", "add a folder of documents", "make a key for the API", "back up the data",
    "scale one role", "cancel an ingest", "change the embedding model", "read a citation",
    "continue a conversation", "see what a turn did",
)  # fmt: skip
FORMS = (
    "How do I {}?", "What do I need to {}?", "Which command lets me {}?", "Can I {}?",
    "Where do I {}?", "What happens when I {}?", "Who may {}?", "How long does it take to {}?",
    "Is there a way to {}?", "Please tell me how to {}.",
)  # fmt: skip


@dataclass(frozen=True)
class Watched:
    """One turn as its user saw it. Times in seconds from the question."""

    turn: Envelope
    first_token: float | None
    seconds: float


def ask(text: str, collection: str) -> Watched:
    """Ask a question and watch it to its end. Raises TimeoutError."""
    begun = time.monotonic()
    memory = {"text": text, "collections": [collection], "owner": "bench"}
    turn = envelopes.start(memory, conversation_id=uuid.uuid4(), message_id=uuid.uuid4())
    first: float | None = None
    for event in events.follow(turn.target_list, seconds=PATIENCE_SECONDS):
        if event and event[1] == "token" and first is None:
            first = time.monotonic() - begun
        if event and event[1] == "workflow_complete":
            turn.refresh_from_db()
            return Watched(turn, first, time.monotonic() - begun)
    raise TimeoutError(f"turn {turn.pk} did not end")


def waiting(server: ModelServer, collection: str, seconds: float) -> dict[str, Any]:
    """Return how long one documentation turn took against the length of one call."""
    # The first question of a worker pays for what is loaded on first use.
    ask("What is a collection?", collection)
    server.ledger.clear()
    watched = ask("How do I set a model?", collection)
    calls = [asked for asked in server.ledger if asked.ended]
    first = watched.first_token or watched.seconds
    return {
        "status": watched.turn.status,
        "mode": watched.turn.payload["mode"],
        "first_token_s": round(first, 2),
        "end_s": round(watched.seconds, 2),
        "calls": [asked.prompt for asked in calls],
        "at_once": sorted({" + ".join(sorted(pair)) for pair in overlapping(calls)}),
        "sum_of_calls_s": round(sum((c.ended or 0) - c.began for c in calls), 2),
        "first_token_in_calls": round(first / seconds, 2),
    }


def overlapping(calls: list[Asked]) -> set[tuple[str, str]]:
    """Return the pairs of prompts whose calls were under way at the same time."""
    return {
        (a.prompt, b.prompt)
        for place, a in enumerate(calls)
        for b in calls[place + 1 :]
        if a.began < (b.ended or 0) and b.began < (a.ended or 0)
    }


def repeated(
    server: ModelServer, collection: str, count: int, progress: Callable[[str], Any]
) -> dict[str, Any]:
    """Return what `count` questions cost the first time and the second."""
    questions = [form.format(subject) for form in FORMS for subject in SUBJECTS][:count]
    return {name: _round(server, collection, questions, name, progress) for name in ROUNDS}


def _round(
    server: ModelServer,
    collection: str,
    questions: list[str],
    name: str,
    progress: Callable[[str], Any],
) -> dict[str, Any]:
    server.ledger.clear()
    turns: list[Watched] = []
    for number, question in enumerate(questions, start=1):
        progress(f"{name} time: {number} of {len(questions)}")
        turns.append(ask(question, collection))
    ours = ModelCall.objects.filter(envelope__in=[watched.turn for watched in turns])
    return {
        "questions": len(questions),
        "calls_of_models": len(server.ledger),
        "from_cache": ours.exclude(cached_from=None).count(),
        "ms_each": round(1000 * sum(watched.seconds for watched in turns) / len(turns), 1),
    }
