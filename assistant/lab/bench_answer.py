"""Answer bench: what a question costs in calls, tokens and money, and how long it waits for models.

Real workers ask a model server that takes the same time for every call. What the calls of a turn
take one after another is what the turn is measured by. The server counts a token for four
characters of the messages: OpenAI's tokenizer o200k_base counted 2.5 % fewer in the rules of seven
prompts. Schemas, which some providers bill as well, are not counted.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import fmean
from typing import Any

from django.conf import settings
from rich.table import Table

from agents import envelopes
from agents.llm.cost import cost
from agents.llm.requests import Usage
from agents.models import Envelope, ModelCall
from agents.steps import events
from assistant.lab.model_server import CHARACTERS_A_TOKEN, Call, ModelServer
from assistant.lab.rehearsal import COLLECTION, rehearsing
from assistant.lab.scripted_replies import Sensible

# Beyond the deadline of a turn, after which somebody has to end it.
PATIENCE_SECONDS = 30.0
ROUNDS = ("first", "second")
# First questions of a conversation as people type them, which the documentation answers.
ORDINARY = (
    "How do I set a model?", "How do I make a key for the API?", "Which files can I ingest?",
    "How do I back up the data?", "What happens when a model fails?",
    "How long are conversations kept?", "How do I scale one role?",
    "Can I use a server of my own for models?", "How do I change the embedding model?",
    "Where do I see what a turn cost?", "How do I cancel an ingest?",
    "What does a citation say about its passage?",
)  # fmt: skip
# Whose published price the money is told in.
PRICED = "gpt-4o-mini@openai"
# What OpenAI takes from its cache: the beginning that a request shares with an earlier one, from
# 1,024 tokens on and in steps of 128 (its guide "Prompt caching").
CACHED_FROM, CACHED_STEP = 1024, 128
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

    Tokens, calls and money are means of a turn; `first_word_calls` and `end_calls` are times from
    the question in lengths of a call. Raises NoWorkers.
    """
    model = Sensible(seconds)
    # As Docent comes: one route, and so no router.
    with rehearsing(model.reply, cached=True, routes=["documentation"]) as server:
        figures = ordinary(server, seconds, progress)
        model.seconds = 0.0
        again = repeated(server, COLLECTION, questions, progress)
    return {"seconds": seconds, **figures, "repeated": again}


def ask(text: str, collection: str) -> TimedTurn:
    """Ask a question and watch it to its end. Raises TimeoutError."""
    begin = time.monotonic()
    memory = {"text": text, "collections": [collection], "owner": "bench"}
    turn = envelopes.start(memory, conversation_id=uuid.uuid4(), message_id=uuid.uuid4())
    first: float | None = None
    seconds = settings.TURN_DEADLINE_SECONDS + PATIENCE_SECONDS
    for event in events.follow(turn.target_list, seconds=seconds):
        if event and event[1] == "token" and first is None:
            first = time.monotonic() - begin
        if event and event[1] == "workflow_complete":
            turn.refresh_from_db()
            return TimedTurn(turn, first, time.monotonic() - begin)
    raise TimeoutError(f"turn {turn.pk} did not end")


def ordinary(server: ModelServer, seconds: float, progress: Progress) -> dict[str, Any]:
    """Return what the ordinary questions cost, each in a conversation of its own."""
    # The first question of a worker pays for what is loaded on first use.
    ask("What is a collection?", COLLECTION)
    turns: list[TimedTurn] = []
    calls: list[list[Call]] = []
    for number, question in enumerate(ORDINARY, start=1):
        progress(f"one after another: {number} of {len(ORDINARY)}")
        server.ledger.clear()
        turns.append(ask(question, COLLECTION))
        calls.append([call for call in server.ledger if call.ended])
    roles = by_role(turns)
    return {
        "questions": len(turns),
        "modes": sorted({timed.turn.payload["mode"] for timed in turns}),
        "tokens_per_turn": total(roles, "tokens"),
        "reply_tokens_per_turn": total(roles, "reply_tokens"),
        "calls_per_turn": total(roles, "calls"),
        "sequential_calls": mean(len(longest_chain(each)) for each in calls),
        "first_word_calls": mean((each.first_token or each.seconds) / seconds for each in turns),
        "end_calls": mean(timed.seconds / seconds for timed in turns),
        "at_once": sorted({" + ".join(sorted(p)) for each in calls for p in overlapping(each)}),
        "price": PRICED,
        "usd_per_1000_turns": total(roles, "usd_per_1000"),
        "usd_per_1000_turns_cached": total(roles, "usd_per_1000_cached"),
        "roles": roles,
    }


def by_role(turns: Sequence[TimedTurn]) -> dict[str, dict[str, float]]:
    """Return what each role costs a turn; `prefix` are the tokens all its requests begin with.

    Money is in US dollars for a thousand turns, without and with the provider's cache.
    """
    calls: dict[str, list[ModelCall]] = {}
    for call in ModelCall.objects.filter(envelope__in=[timed.turn for timed in turns]):
        calls.setdefault(call.role, []).append(call)
    return {role: _cost_of(each, len(turns)) for role, each in calls.items()}


def _cost_of(calls: Sequence[ModelCall], turns: int) -> dict[str, float]:
    prefix = shared_tokens([call.request["messages"] for call in calls])
    cached = prefix // CACHED_STEP * CACHED_STEP if prefix >= CACHED_FROM else 0
    usages = [Usage(call.input_tokens, call.output_tokens) for call in calls]
    return {
        "calls": round(len(calls) / turns, 2),
        "tokens": round(sum(usage.input_tokens or 0 for usage in usages) / turns),
        "reply_tokens": round(sum(usage.output_tokens or 0 for usage in usages) / turns),
        "prefix": prefix,
        "usd_per_1000": _money(usages, turns),
        "usd_per_1000_cached": _money([replace(u, cached_tokens=cached) for u in usages], turns),
    }


def shared_tokens(requests: Sequence[Sequence[Mapping[str, str]]]) -> int:
    """Return with how many equal tokens all these messages begin."""
    texts = ["\n".join(message["content"] for message in messages) for messages in requests]
    columns = zip(*texts, strict=False)
    same = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    return same // CHARACTERS_A_TOKEN


def _money(usages: Iterable[Usage], turns: int) -> float:
    return round(1000 * float(sum(cost(PRICED, usage) or 0 for usage in usages)) / turns, 4)


def total(roles: dict[str, dict[str, float]], figure: str) -> float:
    """Return the sum of a figure over the roles."""
    return round(sum(each[figure] for each in roles.values()), 4)


def mean(values: Iterable[float]) -> float:
    """Return the mean to two digits."""
    return round(fmean(values), 2)


def longest_chain(calls: Iterable[Call]) -> list[Call]:
    """Return the most calls of which each began when the one before it had ended."""
    chain: list[Call] = []
    for call in sorted(calls, key=lambda each: each.ended or 0):
        if not chain or call.began >= (chain[-1].ended or 0):
            chain.append(call)
    return chain


def overlapping(calls: Sequence[Call]) -> set[tuple[str, str]]:
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
    """Return what a question costs and waits for, and what it costs to ask it again."""
    rows = Table("", "", title=f"calls of {figures['seconds']} s")
    rows.add_row("tokens sent", f"{figures['tokens_per_turn']:,.0f}")
    rows.add_row("calls", str(figures["calls_per_turn"]))
    rows.add_row("one after another", str(figures["sequential_calls"]))
    rows.add_row("first word, in calls", str(figures["first_word_calls"]))
    rows.add_row("end, in calls", str(figures["end_calls"]))
    rows.add_row("under way at once", ", ".join(figures["at_once"]))
    money = f"{figures['usd_per_1000_turns']:.2f}, {figures['usd_per_1000_turns_cached']:.2f}"
    rows.add_row(f"USD for 1,000 turns by {PRICED}, without and with its cache", money)
    rows.add_section()
    for name, role in figures["roles"].items():
        rows.add_row(name, f"{role['calls']} calls, {role['tokens']:,.0f} tokens")
    for name in ROUNDS:
        costs = figures["repeated"][name]
        rows.add_section()
        rows.add_row(f"{costs['questions']} questions, {name} time", f"{costs['ms_each']} ms each")
        rows.add_row("calls of models", str(costs["calls_of_models"]))
        rows.add_row("replies used again", str(costs["from_cache"]))
    return rows
