"""Serializers: the shape of `GET /api/admin/queues/`."""

from typing import Any

from rest_framework import serializers

from agents.watching.queues import State


def _seconds(source: str, about: str) -> serializers.FloatField:
    return serializers.FloatField(source=source, allow_null=True, help_text=about)


class QueueSerializer(serializers.Serializer[Any]):
    """One queue, with what was seen of its work within the window."""

    name = serializers.CharField(help_text="The role, or `ingest`.")
    queue = serializers.CharField(help_text="Its name in Redis.")
    state = serializers.ChoiceField(choices=[(state.value, state.name) for state in State])
    consumers = serializers.IntegerField(
        allow_null=True, help_text="Workers that listen; null when Redis does not answer."
    )
    queued = serializers.IntegerField(help_text="Due, and taken by nobody yet.")
    postponed = serializers.IntegerField(help_text="Failed, and due again later.")
    running = serializers.IntegerField(help_text="Under way.")
    lost = serializers.IntegerField(help_text="Taken by a worker that fell silent.")
    oldest_seconds = serializers.FloatField(
        source="oldest", help_text="How long the oldest queued one has been due."
    )
    wait_p50_seconds = _seconds("wait.p50", "Median of the time in the queue.")
    wait_p95_seconds = _seconds("wait.p95", "95th percentile of the time in the queue.")
    run_p50_seconds = _seconds("run.p50", "Median of the time at work.")
    run_p95_seconds = _seconds("run.p95", "95th percentile of the time at work.")
    done = serializers.IntegerField()
    failures = serializers.IntegerField(help_text="Attempts that failed or were lost.")
    degraded = serializers.IntegerField(help_text="Done without the model that is set.")
    add_worker = serializers.CharField(help_text="The command that adds a worker.")


class OverviewSerializer(serializers.Serializer[Any]):
    """The turns under way, and every queue."""

    turns = serializers.IntegerField(help_text="Turns under way.")
    turns_limit = serializers.IntegerField(help_text="MAX_TURNS.")
    turns_limit_per_key = serializers.IntegerField(help_text="MAX_TURNS_PER_KEY.")
    overdue = serializers.IntegerField(help_text="Turns past their deadline that nobody ended.")
    sweepers = serializers.IntegerField(
        allow_null=True, help_text="Sweepers that run; null when Redis does not answer."
    )
    window_seconds = serializers.IntegerField(
        help_text="How far back waiting, running, done, failures and degraded look."
    )
    queues = QueueSerializer(many=True)
