"""The API against its schema: a few right and wrong requests made up for each operation.

`evaluate api` makes up as many as one wants, with keys of every scope, for a running Docent.
"""

from typing import Any

import pytest
import schemathesis
from celery import current_app
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as how
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth

from agents.models import Envelope
from agents.names import Role, Status
from agents.steps import presence
from assistant.lab.api_cases import CONFIG
from conversations import api
from conversations.grants import SCOPES
from knowledge.api import ingest_api
from tests import factories

CASES = 1  # of each operation, right ones and wrong ones


@pytest.fixture
def headers(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> dict[str, str]:
    """A key of all scopes; turns end at once, and nothing else is done."""
    settings.MAX_REQUESTS_PER_KEY = settings.MAX_REQUESTS_PER_ADDRESS = 0
    settings.MAX_TURNS_PER_KEY = settings.MAX_TURNS = 10_000
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: None)
    monkeypatch.setattr(ingest_api, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(api, "wait", answered)
    user = User.objects.create_superuser("ann")
    factories.collection("handbook")
    factories.turn(factories.conversation("visitor-17", owner=user))
    return factories.key(user, scopes=list(SCOPES))


def answered(envelope: Envelope) -> Envelope:
    """The turn, as if it had been answered."""
    Envelope.objects.filter(pk=envelope.pk).update(status=Status.COMPLETED)
    envelope.refresh_from_db()
    return envelope


def test_what_is_made_up_for_each_operation_is_answered_as_the_schema_says(
    headers: dict[str, str],
) -> None:
    config = schemathesis.Config.from_dict(CONFIG)
    schema = schemathesis.openapi.from_wsgi(
        "/api/schema/?format=json", get_wsgi_application(), config=config
    )
    tried: set[str] = set()
    found: Any
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:
            if not operation.label.startswith("DELETE"):
                try_some(operation, mode, headers)
        tried.add(operation.label)
    assert {"POST /api/chat/", "GET /v1/models", "GET /api/search/"} <= tried


def try_some(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> None:
    """Ask what is made up, and compare the answers with the schema."""
    presence.announce([role.queue for role in Role])

    @how(
        max_examples=CASES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        # That a key is asked for, test_access tries.
        case.call_and_validate(headers=headers, excluded_checks=[ignored_auth])

    ask()
