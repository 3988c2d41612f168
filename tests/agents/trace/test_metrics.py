"""Metrics: what Prometheus reads."""

import re
from contextlib import closing

import pytest
import redis
from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from agents.names import Role
from agents.steps import presence
from agents.trace import metrics
from assistant import health
from conversations.stream import CLIENT_NAME
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


def test_without_postgresql_metrics_are_what_redis_counts(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError

    monkeypatch.setattr(metrics, "overview", away)
    monkeypatch.setattr(health, "figures", away)
    values = samples(client)
    assert values.pop(("docent_server_up", "postgresql")) == 0
    assert {name for name, *_ in values} == {"docent_refused_total", "docent_open_streams"}


def test_metrics_without_redis_are_silent_about_who_listens(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.trace.metrics.announcements", lambda: None)
    values = samples(client)
    assert (values["docent_server_up", "postgresql"], values["docent_server_up", "redis"]) == (1, 0)
    assert not any(name == "docent_queue_consumers" for name, *_ in values)


def test_every_metric_that_is_shown_is_documented_with_its_labels(client: Client, db: None) -> None:
    page = (settings.BASE_DIR / "docs/observing.md").read_text(encoding="utf-8")
    documented = {
        name: sorted(re.findall(r"`(\w+)`", labels))
        for names, labels in re.findall(r"^\| (`docent_.*?) \| (.*?) \|", page, re.MULTILINE)
        for name in re.findall(r"`(docent_\w+)`", names)
    }
    registry = (metrics.OverviewCollector(), health.HandoverCollector(), health.DoorCollector())
    shown = {
        family.name + "_total" * (family.type == "counter"): sorted(vars(family)["_labelnames"])
        for collector in registry
        for family in collector.collect()
    }
    assert shown == documented


def test_refusals_and_open_streams_are_counted_in_all_processes(
    client: Client, db: None, settings: Settings
) -> None:
    before = samples(client)
    settings.MAX_REQUESTS_PER_ADDRESS = 1
    statuses = [client.get("/").status_code for _ in range(3)]
    with closing(redis.Redis.from_url(settings.REDIS_URL, client_name=CLIENT_NAME)) as follower:
        follower.ping()
        after = samples(client)
    refused = ("docent_refused_total", "address")
    assert after[refused] - before[refused] == statuses.count(429) > 0
    assert after["docent_open_streams",] - before["docent_open_streams",] == 1


@pytest.mark.django_db
def test_the_schema_describes_the_queues() -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")
