"""Whether Docent says truthfully that it can answer."""

import pytest
from django.test import Client

from agents import presence
from agents.names import Role


@pytest.mark.django_db
def test_it_is_ready_when_every_queue_has_a_consumer(client: Client) -> None:
    presence.announce([*(role.queue for role in Role), *presence.BESIDES.values()])
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


@pytest.mark.django_db
def test_a_role_without_a_consumer_is_named(client: Client) -> None:
    roles = [role.queue for role in Role if role is not Role.EVALUATOR]
    presence.announce([*roles, *presence.BESIDES.values()])
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["No worker listens for the role evaluator."]


@pytest.mark.django_db
def test_a_missing_sweeper_or_ingest_worker_is_named(client: Client) -> None:
    presence.announce([role.queue for role in Role])
    assert client.get("/readyz").json()["problems"] == ["No ingest runs.", "No sweeper runs."]


def test_being_alive_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").status_code == 200
