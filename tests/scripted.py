"""Scripted: models for tests, behind a real HTTP server that says what the test tells it to."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.conf import settings

from agents.llm import breaker, dialects, pace, retry
from agents.llm.journal import Subject
from agents.llm.model import Model
from assistant.lab.model_server import Call, ModelServer, Response, Script, serving
from knowledge.providers import Provider

__all__ = ["Call", "ModelServer", "Response", "Scripted", "shaped"]

KEY = "a-secret-key"
STEPS = itertools.count(1)


def shaped(**values: Any) -> Response:
    """Return a reply that is this JSON object."""
    return Response(json.dumps(values, ensure_ascii=False))


@dataclass
class Scripted:
    """A model server with one reply per prompt, and models that ask it."""

    replies: dict[str, Response | list[Response] | Script] = field(default_factory=dict)
    server: ModelServer = field(init=False)
    waits: list[float] = field(default_factory=list)  # seconds between attempts, not waited for

    def says(self, prompt: str, *said: Response | Script) -> None:
        """Answer this prompt so, one after the other; the last one holds from then on."""
        only = said[0] if len(said) == 1 else None
        self.replies[prompt] = only or [each for each in said if isinstance(each, Response)]

    def reply(self, asked: Call) -> Response:
        """Return what is said to a call; a prompt without a reply gets status 500."""
        said = self.replies.get(asked.prompt)
        if callable(said):
            return said(asked)
        if isinstance(said, list):
            return said.pop(0) if len(said) > 1 else said[0]
        return said or Response(status=500)

    def model(self, role: str, subject: str = "", **changes: object) -> Model:
        """Return the model of a role, asking this server for nobody, in a step of its own."""
        subject = subject or f"test/{next(STEPS)}"
        choice = replace(settings.MODELS[role], model="fake@scripted", timeout=5.0)
        return Model(choice, Subject(subject, role), fresh=timedelta(0), **changes)  # type: ignore[arg-type]


@contextmanager
def scripted() -> Iterator[Scripted]:
    """Run a model server that providers know as `scripted`, and of which nothing is known yet."""
    models = Scripted()
    breaker.forget("scripted")
    pace.forget("fake@scripted")
    dialects.forget()
    with serving(models.reply) as models.server:
        providers, slept = settings.PROVIDERS, retry.sleep
        before = dict(providers)
        providers["scripted"] = Provider("scripted", models.server.base_url, KEY)
        retry.sleep = models.waits.append
        try:
            yield models
        finally:
            # The same object: a test may have laid settings of its own over it.
            providers.clear()
            providers.update(before)
            settings.PROVIDERS, retry.sleep = providers, slept
