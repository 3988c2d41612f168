"""Thinking: gives the agent at work the model of its role, for this step of this turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings

from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.token_stream import TokenStream
from agents.names import EXPANSION, Role
from agents.steps import step_lease
from agents.steps.records import Claim

# How long an equal request may be served from an earlier reply, by the setting that says so.
FRESH: dict[str, str] = {
    Role.TRANSLATION: "CACHE_TRANSLATION_SECONDS",
    Role.QUALITY: "CACHE_QUALITY_SECONDS",
}


# What search asks a model for, it asks in the name of the step that searches.
_searching: ContextVar[Model | None] = ContextVar("searching", default=None)


@contextmanager
def about(held: Claim) -> Iterator[Model | None]:
    """Yield the model of the claimed step's role; None when none is set."""
    llm = _model(held, asker_of(held.role))
    with lent(llm, held.role) as own:
        yield own
        if llm:
            llm.tokens.flush()


@contextmanager
def lent(llm: Model | None, role: Role) -> Iterator[Model | None]:
    """Yield the model if the role asks it itself; what search asks for, it asks elsewhere."""
    searches = role is Role.SEARCH
    reset = _searching.set(llm if searches else None)
    try:
        yield None if searches else llm
    finally:
        _searching.reset(reset)


def asker_of(role: Role) -> str:
    """Return in whose name a role asks models, as settings call it."""
    return EXPANSION if role is Role.SEARCH else role.value


def searching() -> Model | None:
    """Return the model that may widen the search going on in this thread."""
    return _searching.get()


def fresh(asker: str) -> timedelta:
    """Return how old a reply may be that is given again to an equal request of this asker."""
    return timedelta(seconds=getattr(settings, FRESH.get(asker, "CACHE_MODEL_SECONDS")))


def _model(held: Claim, asker: str) -> Model | None:
    choice = settings.MODELS.get(asker)
    if choice is None or not choice.model:
        return None
    subject = Subject(
        name=f"{held.envelope_id}/{held.number}",
        role=asker,
        owner=owner(held.payload),
        key=held.payload.get("key", ""),
        envelope_id=held.envelope_id,
        step_number=held.number,
    )
    return Model(
        choice,
        subject,
        deadline=held.deadline,
        fresh=fresh(asker),
        tokens=TokenStream(held.stream, held.number, held.attempt),
        before_attempt=partial(step_lease.insist, held.token),
    )


def owner(payload: dict[str, Any]) -> str:
    """Return whose content a turn holds: the owner of the key, and for whom it asks."""
    return f"{payload.get('owner', '')}/{payload.get('user_id', '')}"
