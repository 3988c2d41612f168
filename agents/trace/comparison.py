"""Comparison: the same questions answered by one choice of models and by another.

Each is a turn that nobody else hears of: it goes through the routing table in this process, one
step after another, and only its calls of models are kept, as they are paid for.
"""

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count

from agents.contract import REGISTRY
from agents.decision import Stage
from agents.documentation.passages import without_own_list
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.requests import Choice
from agents.models import ModelCall
from agents.names import Role, Route
from agents.routing import decide
from agents.steps import model_context
from agents.steps.records import Payload, payload_after_agent, payload_after_decision
from agents.trace.usage import usage_of_calls
from agents.words import ENGLISH
from knowledge.collections import OWN_DOCUMENTATION
from knowledge.models import Collection, GoldenQuestion

MOST = 5
# What the documentation that Docent comes with answers.
OWN_QUESTIONS = (
    "How do I add a folder of documents?",
    "What happens when a model fails?",
    "How do I back up the data?",
    "What does a citation say about its passage?",
    "How long are conversations kept?",
)


@dataclass(frozen=True)
class Answered:
    """What came of one question."""

    text: str
    seconds: float
    mode: str  # model, mixed or extractive
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None  # US dollars; None: some price is not known
    citations: dict[str, int]  # how many of each status
    failures: list[str]  # why models were not used where they were asked

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def collection_to_ask() -> Collection | None:
    """Return the collection whose questions tell most: with golden questions, else the largest."""
    golden = GoldenQuestion.objects.exclude(sources=[]).order_by("-pk").first()
    if golden:
        return golden.collection
    sized = Collection.objects.annotate(size=Count("documents")).exclude(size=0).order_by("-size")
    return sized.exclude(name=OWN_DOCUMENTATION).first() or sized.first()


def questions(collection: Collection) -> list[str]:
    """Return up to MOST questions that the collection answers: golden ones, or about its titles."""
    return list(islice(dict.fromkeys(_questions(collection)), MOST))


def _questions(collection: Collection) -> Iterator[str]:
    golden = collection.golden_questions.exclude(sources=[])
    yield from golden.values_list("question", flat=True)[:MOST]
    if collection.name == OWN_DOCUMENTATION:
        yield from OWN_QUESTIONS
    titles = collection.documents.exclude(title="").order_by("source")
    for title in titles.values_list("title", flat=True)[:MOST]:
        yield f"What do the documents say about “{title}”?"


def answered(question: str, collection: str, models: Mapping[str, Choice]) -> Answered:
    """Answer a question about a collection by these models, of each asker; leaves no connection."""
    subject = f"comparison/{uuid.uuid4().hex}"
    begin = time.monotonic()
    payload, failures = _turn(question, collection, models, subject)
    seconds = time.monotonic() - begin
    calls = usage_of_calls(ModelCall.objects.filter(subject__startswith=f"{subject}/"))
    connection.close()
    citations = Counter(each["citation_status"] for each in payload.get("citations_used", ()))
    return Answered(
        text=without_own_list(payload.get("response", "")),
        seconds=round(seconds, 2),
        mode=payload["mode"],
        calls=calls["model_calls"],
        input_tokens=calls["input_tokens"],
        output_tokens=calls["output_tokens"],
        cost=calls["cost"],
        citations=dict(citations),
        failures=failures,
    )


def _turn(
    question: str, collection: str, models: Mapping[str, Choice], subject: str
) -> tuple[Payload, list[str]]:
    """Return the payload at the end of a turn, and how models failed on the way."""
    payload: Payload = {
        "text": question,
        "collections": [collection],
        "stage": str(Stage.START),
        "enabled_routes": [str(Route.DOCUMENTATION)],
        "mode": "extractive",
    }
    failures, modes, number = [], set[str](), 0
    while number < settings.MAX_PROCESS_COUNT:
        decision = decide(payload)
        payload = payload_after_decision(payload, decision.record())
        for role in decision.to:
            number += 1
            asker = model_context.asker_of(role)
            llm = _model(asker, models, f"{subject}/{number}")
            with model_context.lend(llm, role) as own:
                result = REGISTRY[role].perform(payload, own)
            payload = payload_after_agent(payload, role, result.writes)
            modes |= {result.mode} - {""}
            failures += [f"{role}: {result.degraded}"] if result.degraded else []
        if not decision.to:
            if decision.phrase:
                language = payload.get("language", ENGLISH)
                payload = payload | {"response": decision.phrase.in_language(language)}
            break
    mode = "extractive" if modes <= {"extractive"} else "mixed" if len(modes) > 1 else "model"
    return payload | {"mode": mode}, failures


def _model(asker: str, models: Mapping[str, Choice], subject: str) -> Model | None:
    choice = models.get(asker, Choice())
    if not choice.model:
        return None
    return Model(choice, Subject(subject, asker), answer=models.get(Role.RESPONSE.value))


def summary(answers: Sequence[Answered]) -> dict[str, Any]:
    """Return the means of a question, and what 1,000 such questions cost (None: not known)."""
    count = max(len(answers), 1)
    citations = sum((Counter(each.citations) for each in answers), Counter[str]())
    costs = [each.cost for each in answers if each.cost is not None]
    return {
        "questions": len(answers),
        "seconds": round(sum(each.seconds for each in answers) / count, 2),
        "calls": round(sum(each.calls for each in answers) / count, 1),
        "input_tokens": round(sum(each.input_tokens for each in answers) / count),
        "output_tokens": round(sum(each.output_tokens for each in answers) / count),
        "usd_per_1000": round(1000 * sum(costs) / count, 4) if len(costs) == len(answers) else None,
        "citations": dict(citations),
    }
