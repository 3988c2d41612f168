"""Serializers: what is asked about usage, and what it comes to."""

from datetime import timedelta
from typing import Any

from django.utils.timezone import now
from rest_framework import serializers

from agents.usage import PARTS

USUAL_DAYS = 30


class UsageQuery(serializers.Serializer[Any]):
    """The query of `GET /api/admin/usage/`."""

    to = serializers.DateField(required=False, help_text="Last day (UTC); today when left out.")
    by = serializers.ChoiceField(choices=list(PARTS), default="day")

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which is no name in Python."""
        first = serializers.DateField(
            required=False, help_text=f"First day (UTC); {USUAL_DAYS} days before `to`."
        )
        return {"from": first, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Fill in the days that were left out. Refuses a first day after the last."""
        until = attrs.get("to") or now().date()
        since = attrs.get("from") or until - timedelta(days=USUAL_DAYS - 1)
        if since > until:
            raise serializers.ValidationError({"from": "The first day comes after the last."})
        return {"since": since, "until": until, "by": attrs["by"]}


class UsageRow(serializers.Serializer[Any]):
    """The calls of one day, role, model or owner."""

    name = serializers.CharField()
    model_calls = serializers.IntegerField(help_text="Calls that were made.")
    cached_calls = serializers.IntegerField(help_text="Calls an earlier reply answered.")
    failed_calls = serializers.IntegerField(help_text="Calls without a usable reply.")
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cost = serializers.FloatField(
        allow_null=True, help_text="US dollars; null when the price of a call is not known."
    )
    priced_cost = serializers.FloatField(help_text="US dollars of the calls whose price is known.")
    unpriced_calls = serializers.IntegerField()
    p50_seconds = serializers.FloatField(allow_null=True, help_text="Median of a reply's time.")
    p95_seconds = serializers.FloatField(allow_null=True)


class UsageFigures(serializers.Serializer[Any]):
    """What models were asked between two days, part by part."""

    to = serializers.DateField()
    by = serializers.CharField()
    total = UsageRow()
    rows = UsageRow(many=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which is no name in Python."""
        return {"from": serializers.DateField(), **super().get_fields()}
