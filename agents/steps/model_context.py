"""Model context: gives the agent at work the model of its role, for this step of this turn."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection

from agents.llm.cost import check_analysis
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.outcomes import UNASKED, ModelFailure, Outcome
from agents.llm.requests import Choice
from agents.llm.stops import STOPS
from agents.llm.token_stream import TokenStream
from agents.models import Step
from agents.names import EXPANSION, SPECIALISTS, Role
from agents.steps import step_lease
from agents.steps.records import Claim

# How long an equal request may be served from an earlier reply, by the setting that says so.
CACHE_SETTINGS: dict[str, str] = {
    Role.TRANSLATION: "CACHE_TRANSLATION_SECONDS",
    Role.QUALITY: "CACHE_QUALITY_SECONDS",
}
# So many roles in a row whose models failed, and the rest of the turn is done without.
FAILURES = 3
# The share of an analysis' time that is left for its answer and the check of that.
FOR_THE_ANSWER = 0.25
# What search asks a model for, it asks in the name of the step that searches.
_search_model: ContextVar[Model | None] = ContextVar("search_model", default=None)


@contextmanager
def model_of(claim: Claim) -> Iterator[Model | None]:
    """Yield the model that the agent of the claimed step may ask; None when it has none."""
    llm = _model(claim)
    with lend(llm, claim.role) as own:
        yield own
        if llm:
            llm.tokens.flush()


@contextmanager
def lend(llm: Model | None, role: Role) -> Iterator[Model | None]:
    """Yield the model if the role asks it itself; for search it is lent to `search_model`."""
    searches = role is Role.SEARCH
    reset = _search_model.set(llm if searches else None)
    try:
        yield None if searches else llm
    finally:
        _search_model.reset(reset)


def search_model() -> Model | None:
    """Return the model that may widen the search going on in this thread."""
    return _search_model.get()


def asker_of(role: Role) -> str:
    """Return in whose name a role asks models, as settings call it."""
    return EXPANSION if role is Role.SEARCH else role.value


def choice_of(asker: str, payload: Mapping[str, Any]) -> Choice:
    """Return the model settings of an asker in a turn, as its assistant has them."""
    choice: Choice = settings.MODELS.get(asker, Choice())
    own = (payload.get("assistant") or {}).get("models", {})
    return replace(choice, model=own[asker]) if asker in own else choice


def _model(claim: Claim) -> Model | None:
    asker = asker_of(claim.role)
    choice = choice_of(asker, claim.payload)
    if not choice.model:
        return None
    subject = Subject(
        name=f"{claim.envelope_id}/{claim.number}",
        role=asker,
        owner=owner(claim.payload),
        key=claim.payload.get("key", ""),
        envelope_id=claim.envelope_id,
        step_number=claim.number,
    )
    return Model(
        choice,
        subject,
        deadline=_deadline(claim),
        answer=choice_of(Role.RESPONSE.value, claim.payload),
        fresh=_cache_age(asker),
        tokens=TokenStream(claim.stream, claim.number, claim.attempt),
        before_attempt=partial(_before_attempt, claim),
    )


def _deadline(claim: Claim) -> datetime:
    """By when a role is to be done: specialists so early that an answer can be made of it."""
    return claim.deadline - (for_the_answer() if claim.role in SPECIALISTS else timedelta(0))


def for_the_answer() -> timedelta:
    """Return how long before the end of an analysis its specialists are to be done."""
    return timedelta(seconds=FOR_THE_ANSWER * settings.ANALYSIS_DEADLINE_SECONDS)


def _before_attempt(claim: Claim) -> None:
    step_lease.require(claim.token)
    STOPS.refuse(claim.envelope_id)
    try:
        if claim.role in SPECIALISTS:
            check_analysis(claim.envelope_id)
        _refuse_hopeless(claim)
    finally:
        connection.close()


def _refuse_hopeless(claim: Claim) -> None:
    """Raise ModelFailure (BREAKER_OPEN) when the last roles of this turn that asked all failed."""
    asked = (
        Step.objects.filter(envelope_id=claim.envelope_id, status=Step.Status.DONE)
        .exclude(mode="")
        .exclude(mode="extractive", degraded="")
    )
    for outcome in UNASKED:
        asked = asked.exclude(degraded__startswith=f"{outcome}: ")
    last = list(asked.order_by("-number").values_list("role", "degraded")[:FAILURES])
    if len(last) == FAILURES and all(reason for _, reason in last):
        roles = ", ".join(role for role, _ in reversed(last))
        raise ModelFailure(
            Outcome.BREAKER_OPEN,
            f"No model is asked any more in this turn: {roles} failed one after the other.",
        )


def _cache_age(asker: str) -> timedelta:
    """Return how old a reply may be that is given again to an equal request of this asker."""
    return timedelta(seconds=getattr(settings, CACHE_SETTINGS.get(asker, "CACHE_MODEL_SECONDS")))


def owner(payload: dict[str, Any]) -> str:
    """Return whose content a turn holds: the owner of the key, and for whom it asks."""
    return f"{payload.get('owner', '')}/{payload.get('user_id', '')}"
