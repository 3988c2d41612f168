"""Mending: how a question is put once more after a reply that cannot be used."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Request
from prompts.prompt import Prompt, Rendered

REPAIR = Prompt("_repair", "problem", "schema")
# A reply that did not have its shape is worth one more try, of the same model.
REPAIRABLE = frozenset({Outcome.EMPTY, Outcome.MALFORMED, Outcome.WRONG_SCHEMA})
# So many times the tokens for a model that used them all up before it said a word.
THINKING = 4


def remedy(failure: ModelFailure) -> Callable[[Request], Request] | None:
    """Return how a request is put again after this failure; None: it would not help."""
    if failure.outcome is Outcome.TRUNCATED:
        return partial(with_room, 2 if failure.said else THINKING)
    if failure.outcome not in REPAIRABLE:
        return None
    said = {"role": "assistant", "content": failure.said or "(nothing)"}

    def mended(request: Request) -> Request:
        told = _repair(request, failure.problem).messages[1]
        return replace(request, messages=(*request.messages, said, told))

    return mended


def with_room(times: int, request: Request) -> Request:
    """Return the request with so many times the tokens for its reply."""
    return replace(request, max_tokens=times * request.max_tokens)


def _repair(request: Request, problem: str) -> Rendered:
    return REPAIR.render({"problem": problem, "schema": json.dumps(request.schema)})
