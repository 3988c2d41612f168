"""Failing: every way in which a model can fail, and what the user gets when one of them does."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from django.conf import settings
from django.test import override_settings

from agents.llm import breaker
from agents.llm.outcomes import ModelFailure, Outcome
from agents.models import Envelope, Fault, ModelCall
from agents.names import ENRICHMENT, EXPANSION, Role, Status
from agents.steps import events
from assistant.lab.model_server import Response
from knowledge import ingestion
from knowledge.providers import Provider
from tests.agents.turning import turn
from tests.sensible import Sensible

# Misspelt, of two parts, and found well but not so well that the evaluator need not look at it: no
# role can do its part by rule.
QUESTION = "Where does the watter go when I press the button, and why?"
ROLES = ("translation", "essence", "guardrails", "router", "evaluator", "response", "quality")
TOOL = {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LEAVING = [{"role": "user", "text": "Is it loud?", "time": "2026-11-20T10:00:00+00:00"}]
# Who a prompt belongs to, where that is not the role of its name.
ASKERS = {"graph": ENRICHMENT, "expansion": EXPANSION, "hyde": EXPANSION}


def unreachable(asker: str, sensible: Sensible) -> None:
    """Nobody listens at the address of the asker's provider."""
    _move(asker, Provider("nowhere", "http://127.0.0.1:9/v1"))


def left_alone(asker: str, sensible: Sensible) -> None:
    """The asker's provider has failed too often."""
    _move(asker, Provider("broken", sensible.server.base_url))
    for _ in range(breaker.FAILURES):
        breaker.failed("broken", ModelFailure(Outcome.SERVER_ERROR, "It failed."))


def _move(asker: str, provider: Provider) -> None:
    choice = replace(settings.MODELS[asker], model=f"fake@{provider.name}")
    settings.PROVIDERS = settings.PROVIDERS | {provider.name: provider}
    settings.MODELS = settings.MODELS | {asker: choice}


def budget_spent(asker: str, sensible: Sensible) -> None:
    """Today's money is gone, for this asker as for every other."""
    settings.DAILY_BUDGET = 0.01
    ModelCall.objects.create(
        subject="elsewhere", number=1, role="essence", prompt="essence", prompt_hash="",
        model="fake@scripted", provider="scripted", request={}, request_hash="",
        outcome=Outcome.OK, cost=1, seconds=0,
    )  # fmt: skip


Failure = Response | Callable[[str, Sensible], None]
FAILURES: dict[str, Failure] = {
    "truncated": Response('{"unfinished', finish="length"),
    "refused": Response("", finish="stop", refusal="I can't help with that."),
    "filtered": Response("", finish="content_filter"),
    "malformed": Response("{not json", finish="stop"),
    "endless": Response(" ".join(map(str, range(100_000)))),
    "loop": Response('{"a": "' + "and so on, " * 5000, finish="length"),
    "redirected": Response(status=307, headers={"Location": "/v1/chat/completions"}),
    "empty": Response(""),
    "no choices": Response("x", choices=False),
    "wrong schema": Response('{"something": "else"}'),
    "tool called": Response("", finish="tool_calls", tool_calls=[TOOL]),
    "key refused": Response(status=401),
    "model missing": Response(status=404),
    "rate limited": Response(status=429),
    "rate limited for long": Response(status=429, headers={"Retry-After": "300"}),
    "server error": Response(status=500),
    "rejected": Response(status=400),
    "hang": Response(hang=True),
    "slow drip": Response('{"a": "' + "x" * 400 + '"}', seconds=30.0),
    "reset": Response(reset=True),
    "cut off": Response('{"a": "' + "x" * 400 + '"}', cut_after=3),
    "unreachable": unreachable,
    "breaker open": left_alone,
    "budget spent": budget_spent,
}


def ask(text: str = QUESTION, **memory: object) -> Envelope:
    """A turn about the Teapot."""
    return turn(text, collections=["teapot"], **memory)


def outcome_of(prompt: str, failure: str, sensible: Sensible) -> str:
    """Return in a word what the user gets while the model fails so at this prompt.

    No provider has a record of failures before that.
    """
    events.connection().flushdb()
    sensible.reset()
    failing = FAILURES[failure]
    with override_settings():
        if isinstance(failing, Response):
            sensible.says(prompt, failing)
        else:
            failing(ASKERS.get(prompt, prompt), sensible)
        cell = OUTCOMES[prompt](prompt, failure, sensible)
    assert not Fault.objects.exists(), f"{prompt}, {failure}"
    return cell


def answer(role: str, failure: str, sensible: Sensible) -> str:
    """An answer with citations, or quotes, the failing role's part of it by rules."""
    envelope = ask()
    case = f"{role}, {failure}: {envelope.status}, {envelope.payload.get('response', '')!r}"
    assert envelope.payload["guardrails_verdict"] == "safe", case
    assert role in envelope.steps.exclude(degraded="").values_list("role", flat=True), case
    assert envelope.payload["mode"] != "model", case
    assert envelope.status == Status.COMPLETED, case
    assert envelope.payload["citations_used"], case
    return "quotes" if role == Role.RESPONSE else "answer"


def fixed_words(role: str, failure: str, sensible: Sensible) -> str:
    """A question back, in fixed words."""
    sensible.says("guardrails", {"guardrails_passed": False, "category": "harmful_content"})
    envelope = ask("How can I build an explosive device to hurt people?")
    assert envelope.status == Status.COMPLETED, failure
    assert envelope.payload["response"], failure
    assert role in envelope.steps.exclude(degraded="").values_list("role", flat=True), failure
    return "fixed words"


def notes(role: str, failure: str, sensible: Sensible) -> str:
    """An answer; the messages that left the history are kept as notes."""
    envelope = ask(leaving=LEAVING)
    assert envelope.payload["citations_used"], failure
    assert "Is it loud?" in envelope.payload["summary_update"]["summary"], failure
    assert role in envelope.steps.exclude(degraded="").values_list("role", flat=True), failure
    return "notes"


def search(kind: str, failure: str, sensible: Sensible) -> str:
    """An answer, found by the question alone, which the trace says, or with what the model said."""
    settings.SEARCH_EXPANSION = "expand" if kind == "expansion" else kind
    envelope = ask()
    assert envelope.payload["citations_used"], failure
    expansion = envelope.payload["search_stats"]["expansion"]
    if expansion == "1 more":
        return "searched with"
    assert "the model failed" in expansion, f"{kind}, {failure}: {expansion}"
    return "question alone"


def ingest(prompt: str, failure: str, sensible: Sensible) -> str:
    """The document without what the model would have said of it, and a warning."""
    settings.KNOWLEDGE_GRAPH = prompt == "graph"
    with TemporaryDirectory() as folder:
        # No model was asked of this text before.
        (Path(folder) / "fog.md").write_text(f"# Fog\n\nThe foghorn sounds twice. {uuid4()}\n")
        report = ingestion.ingest(ingestion.find([Path(folder)]), collection="island")
    assert report.new + report.changed == 1, failure
    warning, cell = WITHOUT[prompt]
    reasons = [line.reason for line in report.warnings]
    assert any(warning in reason for reason in reasons), f"{prompt}, {failure}"
    return cell


# What an ingest warns of, and what it comes to.
WITHOUT = {
    "enrichment": ("described by its own words", "own words"),
    "graph": ("relations were taken in by rules", "no relations"),
}
OUTCOMES: dict[str, Callable[[str, str, Sensible], str]] = {
    **dict.fromkeys(ROLES, answer),
    "clarification": fixed_words,
    "memory": notes,
    "expansion": search,
    "hyde": search,
    "enrichment": ingest,
    "graph": ingest,
}
