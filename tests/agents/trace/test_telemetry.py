"""Telemetry: what a collector of OpenTelemetry is sent of a turn."""

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from agents import envelopes
from agents.models import Envelope, Step
from agents.names import Role
from agents.tools.toolbox import Toolbox
from agents.trace import correlation, tally
from agents.trace.telemetry import MOST_WAITING, Telemetry
from tests.agents.tools.bench import laid_out, step_of, want
from tests.agents.trace.test_tally import call_of
from tests.conftest import Begin

WORDS = "the colour of my teapot"
OUTER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Collector:
    """A collector that keeps what it is sent, decoded."""

    def __init__(self, server: HTTPServer) -> None:
        self.resource: dict[str, Any] = {}
        self.spans: list[Any] = []
        self.bodies: list[bytes] = []
        server.expect_request("/v1/traces").respond_with_handler(self.take)

    def take(self, request: Request) -> Response:
        body = request.get_data()
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = values(resource.resource)
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return Response(status=200)

    def span(self, name: str) -> Any:
        (span,) = (span for span in self.spans if span.name == name)
        return span


def values(holder: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""

    def plain(value: Any) -> Any:
        kind = value.WhichOneof("value")
        found = getattr(value, kind)
        return [plain(each) for each in found.values] if kind == "array_value" else found

    return {each.key: plain(each.value) for each in holder.attributes}


@pytest.fixture
def collector(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Collector:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", httpserver.url_for("/").rstrip("/"))
    return Collector(httpserver)


@pytest.fixture
def export(collector: Collector) -> Iterator[Callable[[], Collector]]:
    """Export what has ended, as the sweeper does."""
    telemetry: list[Telemetry] = []

    def run() -> Collector:
        telemetry.append(Telemetry())
        telemetry[-1].tell(tally.count_ended())
        telemetry[-1].provider.force_flush()
        return collector

    yield run
    for each in telemetry:
        each.provider.shutdown()


@pytest.fixture
def ended(begin: Begin) -> Envelope:
    """A turn that searched, asked a model and called a tool, and waited 2 s for the search."""
    envelope = begin(text=WORDS)
    with laid_out():
        Toolbox.of(step_of(envelope)).call_all([want("look", query=WORDS)])
    began = now()
    envelope.steps.update(status="done", started=began, ended=began, available_at=began)
    for number, role in enumerate((Role.SEARCH, Role.RESPONSE), 12):
        Step.objects.create(
            envelope=envelope,
            number=number,
            batch=1,
            role=role,
            stage="route",
            status="done",
            attempt=3,
            available_at=began - timedelta(seconds=2),
            started=began,
            ended=began + timedelta(seconds=number - 10),
            degraded=f"timeout: {WORDS}",
            output={"search_quality": "good", "search_stats": {"total": 3, "ms": {"typos": 1.5}}},
        )
    call_of(
        envelope,
        1,
        step_number=13,
        request={
            "model": "tea-1@scripted",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": WORDS}],
        },
        model="tea-1@scripted",
        reply=WORDS,
        response_id="chatcmpl-7",
        finish_reason="stop",
        input_tokens=11,
        output_tokens=5,
        cost="0.25",
        seconds=1.5,
        attempts=[{"model": "tea-1@scripted", "outcome": "timeout", "seconds": 1, "error": WORDS}],
    )
    payload = envelope.payload | {"response": WORDS, "route": "documentation"}
    Envelope.objects.filter(pk=envelope.pk).update(status="completed", payload=payload)
    return envelope


def test_a_turn_is_one_trace_with_its_id(ended: Envelope, export: Callable[[], Collector]) -> None:
    collector = export()
    assert collector.resource["service.name"] == "docent"
    assert {span.trace_id.hex() for span in collector.spans} == {ended.pk.hex}
    root = collector.span("invoke_agent docent")
    assert not root.parent_span_id
    assert (
        values(root).items()
        >= {
            "gen_ai.conversation.id": str(ended.conversation_id),
            "gen_ai.usage.input_tokens": 11,
            "docent.cost_dollars": 0.25,
            "docent.status": "completed",
            "docent.route": "documentation",
        }.items()
    )
    steps = [collector.span(f"invoke_agent {role}") for role in ("search", "response")]
    assert {span.parent_span_id for span in (*steps, collector.span("route"))} == {root.span_id}
    assert steps[1].end_time_unix_nano - steps[1].start_time_unix_nano == 3 * 10**9
    assert (
        values(steps[1]).items()
        >= {
            "docent.role": "response",
            "docent.stage": "route",
            "docent.attempt": 3,
            "docent.queue_wait_seconds": 2.0,
            "docent.degraded": "timeout",
        }.items()
    )
    search = collector.span("retrieval")
    assert search.parent_span_id == steps[0].span_id
    assert values(search)["docent.search.quality"] == "good"


def test_calls_of_models_and_tools_follow_the_conventions(
    ended: Envelope, export: Callable[[], Collector]
) -> None:
    collector = export()
    call = collector.span("chat tea-1")
    assert call.parent_span_id == collector.span("invoke_agent response").span_id
    assert call.end_time_unix_nano - call.start_time_unix_nano == 15 * 10**8
    assert [event.name for event in call.events] == ["attempt failed"]
    assert (
        values(call).items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "scripted",
            "gen_ai.system": "scripted",
            "gen_ai.request.model": "tea-1",
            "gen_ai.request.max_tokens": 9,
            "gen_ai.response.id": "chatcmpl-7",
            "gen_ai.usage.input_tokens": 11,
            "gen_ai.usage.output_tokens": 5,
        }.items()
    )
    assert values(call)["gen_ai.response.finish_reasons"] == ["stop"]
    (tool,) = (span for span in collector.spans if span.name.startswith("execute_tool"))
    assert tool.parent_span_id == collector.span("invoke_agent evaluator").span_id


def test_what_was_said_is_told_only_where_a_setting_asks_for_it(
    ended: Envelope, export: Callable[[], Collector], settings: Settings
) -> None:
    assert not any(WORDS.encode() in body for body in export().bodies)
    Envelope.objects.update(counted=False)
    settings.OTEL_CAPTURE_CONTENT = True
    collector = export()
    said = values(collector.spans[-1])
    assert json.loads(said["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": WORDS}]}
    ]


def test_a_turn_joins_the_trace_of_who_asked(export: Callable[[], Collector], begin: Begin) -> None:
    with correlation.about(traceparent=OUTER):
        envelope = begin()
    assert envelopes.cancel(envelope.pk)
    root = export().span("invoke_agent docent")
    assert f"00-{root.trace_id.hex()}-{root.parent_span_id.hex()}-01" == OUTER


def test_a_collector_that_is_away_keeps_nobody_waiting(
    ended: Envelope, monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    telemetry = Telemetry()
    telemetry.tell([ended.pk])
    telemetry.provider.shutdown()
    for _ in range(MOST_WAITING + 1):
        telemetry.offer([ended.pk])
    assert telemetry.ended.full()
