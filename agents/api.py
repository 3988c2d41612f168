"""API for operators: queues and usage."""

from datetime import timedelta
from typing import Any, ClassVar

from django.utils.timezone import now
from drf_spectacular.utils import OpenApiExample, extend_schema
from pydantic import RootModel
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.contract import ContractRow, contract_table
from agents.trace.metrics import overview
from agents.trace.queues import State
from agents.trace.usage import PARTS, figures
from knowledge.api.sent import Sent
from knowledge.identifiers import Scope

USUAL_DAYS = 30


class UsageQuery(Sent):
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
    """The calls of one day, role, model, key, conversation or owner."""

    name = serializers.CharField()
    id = serializers.CharField(help_text="Of the key or conversation; else the name.")
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
    possibly_paid_calls = serializers.IntegerField(
        help_text="Calls on their way or lost with their worker, at the most they can cost."
    )
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


class UsageView(APIView):
    """Usage of language models: calls, tokens, cost and time."""

    scope = Scope.ADMIN
    rights: ClassVar = {"GET": "agents.view_modelcall"}

    @extend_schema(parameters=[UsageQuery], responses=UsageFigures)
    def get(self, request: Request) -> Response:
        """Return the figures between two days, by day, role, model, key, conversation or owner."""
        query = UsageQuery.read(request.query_params)
        return Response(UsageFigures(figures(**query)).data)


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


class QueuesView(APIView):
    """Queues: what waits, who listens, and how long the work takes."""

    scope = Scope.ADMIN
    rights: ClassVar = {"GET": "agents.view_envelope"}

    @extend_schema(responses=OverviewSerializer)
    def get(self, request: Request) -> Response:
        """Return the turns under way and every queue as it is now."""
        return Response(OverviewSerializer(overview()).data)


class ContractTable(RootModel[list[ContractRow]]):
    """A row for each role."""


CONTRACT = OpenApiExample(
    "A role",
    [
        {
            "role": "evaluator",
            "kind": "LLM",
            "queue": "agents.evaluator",
            "instances": 2,
            "reads": ["canonical_question", "search_results"],
            "writes": ["evaluation", "refined_query", "limitations"],
            "trace": [],
        }
    ],
    response_only=True,
)


class ContractsView(APIView):
    """The contracts: what every agent reads and writes."""

    scope = Scope.ADMIN
    rights: ClassVar = {"GET": "agents.view_envelope"}

    @extend_schema(responses=ContractTable, examples=[CONTRACT])
    def get(self, request: Request) -> Response:
        """Return the contract of each role, as the command `contracts --json` prints them."""
        return Response(ContractTable(contract_table()).model_dump(mode="json"))
