"""Answer bench: how long a question waits for models, and what an equal question costs again.

Real workers ask a model server that takes the same time for every call. What the calls of a turn
take one after another is what the turn is measured by.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from agents import envelopes
from agents.models import Envelope, ModelCall
from agents.steps import events
from assistant.lab.model_server import Call, ModelServer
from assistant.lab.rehearsal import COLLECTION, rehearsing
from assistant.lab.scripted_replies import Sensible

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

Progress = Callable[[str], Any]


@dataclass(frozen=True)
class TimedTurn:
    """One turn as its user saw it. Times in seconds from the question."""

    turn: Envelope
    first_token: float | None
    seconds: float


def measure(seconds: float, questions: int, progress: Progress) -> dict[str, Any]:
    """Return the figures for calls of so many seconds, and for questions asked twice at 0 seconds.

    Raises NoWorkers.
    """
    model = Sensible(seconds)
    with rehearsing(model.reply, cached=True) as server:
        progress("one turn")
        once = waiting(server, COLLECTION, seconds)
        model.seconds = 0.0
        twice = repeated(server, COLLECTION, questions, progress)
    return {"seconds": seconds, "waiting": once, "repeated": twice}


def ask(text: str, collection: str) -> TimedTurn:
    """Ask a question and watch it to its end. Raises TimeoutError."""
    begin = time.monotonic()
    memory = {"text": text, "collections": [collection], "owner": "bench"}
    turn = envelopes.start(memory, conversation_id=uuid.uuid4(), message_id=uuid.uuid4())
    first: float | None = None
    for event in events.follow(turn.target_list, seconds=PATIENCE_SECONDS):
        if event and event[1] == "token" and first is None:
            first = time.monotonic() - begin
        if event and event[1] == "workflow_complete":
            turn.refresh_from_db()
            return TimedTurn(turn, first, time.monotonic() - begin)
    raise TimeoutError(f"turn {turn.pk} did not end")


def waiting(server: ModelServer, collection: str, seconds: float) -> dict[str, Any]:
    """Return how long one documentation turn took against the length of one call."""
    # The first question of a worker pays for what is loaded on first use.
    ask("What is a collection?", collection)
    server.ledger.clear()
    timed = ask("How do I set a model?", collection)
    calls = [call for call in server.ledger if call.ended]
    first = timed.first_token or timed.seconds
    return {
        "status": timed.turn.status,
        "mode": timed.turn.payload["mode"],
        "first_token_s": round(first, 2),
        "end_s": round(timed.seconds, 2),
        "calls": [call.prompt for call in calls],
        "at_once": sorted({" + ".join(sorted(pair)) for pair in overlapping(calls)}),
        "sum_of_calls_s": round(sum((call.ended or 0) - call.began for call in calls), 2),
        "first_token_in_calls": round(first / seconds, 2),
    }


def overlapping(calls: list[Call]) -> set[tuple[str, str]]:
    """Return the pairs of prompts whose calls were under way at the same time."""
    return {
        (call.prompt, other.prompt)
        for place, call in enumerate(calls)
        for other in calls[place + 1 :]
        if call.began < (other.ended or 0) and other.began < (call.ended or 0)
    }


def repeated(
    server: ModelServer, collection: str, count: int, progress: Progress
) -> dict[str, Any]:
    """Return what `count` questions cost the first time and the second."""
    questions = [form.format(subject) for form in FORMS for subject in SUBJECTS][:count]
    return {name: _round(server, collection, questions, name, progress) for name in ROUNDS}


def _round(
    server: ModelServer,
    collection: str,
    questions: list[str],
    name: str,
    progress: Progress,
) -> dict[str, Any]:
    server.ledger.clear()
    turns: list[TimedTurn] = []
    for number, question in enumerate(questions, start=1):
        progress(f"{name} time: {number} of {len(questions)}")
        turns.append(ask(question, collection))
    calls = ModelCall.objects.filter(envelope__in=[timed.turn for timed in turns])
    return {
        "questions": len(questions),
        "calls_of_models": len(server.ledger),
        "from_cache": calls.exclude(cached_from=None).count(),
        "ms_each": round(1000 * sum(timed.seconds for timed in turns) / len(turns), 1),
    }


def table(figures: dict[str, Any]) -> Table:
    """Return how long a question waited, and what it cost to ask it again."""
    waiting, again = figures["waiting"], figures["repeated"]
    rows = Table("", "", title=f"calls of {figures['seconds']} s")
    rows.add_row("first token", f"{waiting['first_token_s']} s")
    rows.add_row("first token, in calls", str(waiting["first_token_in_calls"]))
    rows.add_row("end", f"{waiting['end_s']} s")
    rows.add_row("sum of its calls", f"{waiting['sum_of_calls_s']} s")
    rows.add_row("calls", ", ".join(waiting["calls"]))
    rows.add_row("under way at once", ", ".join(waiting["at_once"]))
    for name in ROUNDS:
        costs = again[name]
        rows.add_section()
        rows.add_row(f"{costs['questions']} questions, {name} time", f"{costs['ms_each']} ms each")
        rows.add_row("calls of models", str(costs["calls_of_models"]))
        rows.add_row("replies used again", str(costs["from_cache"]))
    return rows
