"""Probe: a model, a prompt and requests for the tests of how models are asked."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from pydantic import BaseModel, Field

from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.requests import Request
from agents.names import Role
from tests.scripted import shaped

PROBE = """---
variables:
  question: data
  hour: word
samples:
  question: Which?
  hour: noon
---
# probe

You answer.

<!-- user -->
{{ question }}

It is {{ hour }}.
"""


class Verdict(BaseModel):
    """The shape that is asked for."""

    good: bool
    why: str = Field(max_length=40)


GOOD = shaped(good=True, why="because")


def llm(
    second: str = "",
    *,
    model: str = "fake@scripted",
    subject: str = "test/1",
    owner: str = "",
    fresh: float = 0,
    timeout: float = 5.0,
    **changes: Any,
) -> Model:
    """Return a model of the scripted server; `changes` are those of Model."""
    choice = replace(
        settings.MODELS[Role.EVALUATOR],
        model=model,
        second=second,
        timeout=timeout,
        max_tokens=100,
    )
    made_for = Subject(subject, Role.EVALUATOR, owner)
    return Model(choice, made_for, fresh=timedelta(seconds=fresh), **changes)


def request(model: str = "fake@scripted", **changes: Any) -> Request:
    """Return a request for free text."""
    values: dict[str, Any] = {
        "model": model,
        "messages": (
            {"role": "system", "content": "# probe"},
            {"role": "user", "content": "Hello?"},
        ),
        "max_tokens": 100,
        "temperature": 0.0,
    }
    return Request(**values | changes)


def shaped_request(**changes: Any) -> Request:
    """Return a request for a shape."""
    schema = {"type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"]}
    return request(schema_name="Verdict", schema=schema, **changes)
