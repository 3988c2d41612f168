"""Whether Docent says truthfully that it can answer."""

import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils.timezone import now

from agents.names import Role
from agents.steps import presence
from tests.conftest import Begin


@pytest.mark.django_db
def test_it_is_ready_when_every_queue_has_a_consumer(client: Client) -> None:
    presence.announce([*(role.queue for role in Role), *presence.SERVICES.values()])
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


@pytest.mark.django_db
def test_a_role_without_a_consumer_is_named(client: Client) -> None:
    roles = [role.queue for role in Role if role is not Role.EVALUATOR]
    presence.announce([*roles, *presence.SERVICES.values()])
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["No worker listens for the role evaluator."]


@pytest.mark.django_db
def test_a_missing_sweeper_or_ingest_worker_is_named(client: Client) -> None:
    presence.announce([role.queue for role in Role])
    assert client.get("/readyz").json()["problems"] == ["No ingest runs.", "No sweeper runs."]


def test_being_alive_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_alive_but_deaf_is_named(client: Client, begin: Begin) -> None:
    waiting = begin()
    waiting.steps.update(available_at=now() - timedelta(seconds=31))
    queues = [*(role.queue for role in Role), *presence.SERVICES.values()]
    presence.announce(queues, time.time() - 60)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == [
        "The worker of manager says that it listens, and takes nothing: restart it."
    ]
