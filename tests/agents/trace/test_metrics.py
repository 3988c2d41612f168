"""Metrics: what Prometheus reads."""

import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from agents.names import Role
from agents.steps import presence
from agents.trace import metrics
from assistant import health
from tests.conftest import Begin


def samples(client: Client) -> dict[tuple[str, ...], float]:
    """The samples by name and values of their labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_metrics_say_what_the_queues_hold(client: Client, begin: Begin) -> None:
    begin()
    presence.announce([Role.MANAGER.queue])
    values = samples(client)
    assert values["docent_steps", "manager", "queued"] == 1
    assert values["docent_steps", "manager", "lost"] == 0
    assert values["docent_queue_consumers", "manager"] == 1
    assert values["docent_queue_consumers", "search"] == 0
    assert values["docent_queue_deaf", "manager"] == 0
    assert values["docent_turns",] == 1


def test_every_role_is_a_label_of_every_metric_of_queues(client: Client, db: None) -> None:
    roles = {labels[0] for name, *labels in samples(client) if name == "docent_queue_consumers"}
    assert roles == {*Role, "ingest"}


def test_metrics_without_postgresql_say_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError

    monkeypatch.setattr(metrics, "overview", away)
    monkeypatch.setattr(health, "figures", away)
    assert samples(client) == {("docent_server_up", "postgresql"): 0}


def test_metrics_without_redis_are_silent_about_who_listens(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.trace.metrics.announcements", lambda: None)
    values = samples(client)
    assert (values["docent_server_up", "postgresql"], values["docent_server_up", "redis"]) == (1, 0)
    assert not any(name == "docent_queue_consumers" for name, *_ in values)


@pytest.mark.django_db
def test_the_schema_describes_the_queues() -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")
