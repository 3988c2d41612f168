"""Telemetry: turns as traces of OpenTelemetry, by its conventions for generative AI.

A trace is made of what PostgreSQL keeps of a turn, once it has ended: so it is whole whatever
process did what, workers do nothing for it, and a collector that is away is nobody's concern. The
SDK holds a bounded number of spans for the collector and drops what is more.

The conventions: https://github.com/open-telemetry/semantic-conventions-genai.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agents.llm.outcomes import Outcome
from agents.models import Envelope, ModelCall, Step, ToolRun
from agents.names import Role, Status
from agents.tools.tool import TOOLS, ToolOutcome
from agents.trace import tool_use
from agents.trace.usage import calls_of, usage_of_calls

NAME = "docent"
FAILED = {Status.FAILED, Status.EXPIRED}
Attributes = Mapping[str, Any]


class TurnIds(RandomIdGenerator):
    """A trace that nobody else began has the id of its turn, without the hyphens."""

    turn = uuid.UUID(int=1)

    def generate_trace_id(self) -> int:
        """Return the id of the trace that begins."""
        return self.turn.int


class Telemetry:
    """Where ended turns are told to; set up by the OTEL_* variables of the environment."""

    def __init__(self) -> None:
        self.ids = TurnIds()
        self.provider = TracerProvider(
            resource=_resource(), id_generator=self.ids, shutdown_on_exit=False
        )
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self.provider.get_tracer(NAME)

    def tell(self, turns: Iterable[uuid.UUID]) -> None:
        """Make the traces of turns that have ended. It waits for PostgreSQL, and nobody else."""
        for envelope in Envelope.objects.filter(pk__in=list(turns)):
            self._turn(envelope)

    def _turn(self, envelope: Envelope) -> None:
        self.ids.turn = envelope.pk
        outer = TraceContextTextMapPropagator().extract({"traceparent": envelope.traceparent})
        attributes = _of_turn(envelope)
        name = f"invoke_agent {attributes['gen_ai.agent.name']}"
        root = self._start(name, envelope.create_ts, attributes, outer, SpanKind.SERVER)
        inside = set_span_in_context(root)
        calls: dict[int | None, list[ModelCall]] = {}
        for call in calls_of(envelope.pk):
            calls.setdefault(call.step_number, []).append(call)
        runs = tool_use.runs_by_step(envelope.pk)
        for step in envelope.steps.exclude(started=None):
            self._step(step, calls.get(step.number, []), runs[step.number], inside)
        if envelope.status in FAILED:
            root.set_status(StatusCode.ERROR, envelope.error_id)
        root.end(_nanoseconds(envelope.update_ts))

    def _step(
        self, step: Step, calls: Sequence[ModelCall], runs: Sequence[ToolRun], turn: Context
    ) -> None:
        began = step.started or step.created
        name = "route" if step.role == Role.MANAGER else f"invoke_agent {step.role}"
        span = self._start(name, began, _of_step(step), turn)
        inside = set_span_in_context(span)
        if step.role == Role.SEARCH and step.status == Step.Status.DONE:
            search = self._start("retrieval", began, _of_search(step.output), inside)
            search.end(_nanoseconds(step.ended or began))
        for call in calls:
            self._call(call, inside)
        for run in runs:
            self._tool(run, inside)
        if step.status == Step.Status.QUARANTINED:
            span.set_status(StatusCode.ERROR, step.error.partition(":")[0])
        span.end(_nanoseconds(step.ended or began))

    def _call(self, call: ModelCall, step: Context) -> None:
        attributes = _of_call(call)
        began = call.created - timedelta(seconds=call.seconds)
        name = f"chat {attributes['gen_ai.request.model']}"
        span = self._start(name, began, attributes, step, SpanKind.CLIENT)
        for attempt in call.attempts:
            failed = {"error.type": attempt["outcome"], "docent.seconds": attempt["seconds"]}
            span.add_event("attempt failed", failed, _nanoseconds(began))
        if call.outcome != Outcome.OK:
            span.set_status(StatusCode.ERROR, call.outcome)
        span.end(_nanoseconds(call.created))

    def _tool(self, run: ToolRun, step: Context) -> None:
        attributes = _of_tool(run)
        began = run.created - timedelta(seconds=run.seconds)
        span = self._start(
            f"execute_tool {attributes['gen_ai.tool.name']}", began, attributes, step
        )
        if run.outcome != ToolOutcome.OK:
            span.set_status(StatusCode.ERROR, run.outcome)
        span.end(_nanoseconds(run.created))

    def _start(
        self,
        name: str,
        began: datetime,
        attributes: Attributes,
        parent: Context,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        known = {key: value for key, value in attributes.items() if value not in (None, "")}
        return self.tracer.start_span(
            name, parent, kind, attributes=known, start_time=_nanoseconds(began)
        )


def _resource() -> Resource:
    """What the environment says of this service; where it says no name, Docent's."""
    said = Resource.create()
    is_named = not str(said.attributes["service.name"]).startswith("unknown_service")
    return said if is_named else said.merge(Resource({"service.name": NAME}))


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000


def _of_turn(envelope: Envelope) -> dict[str, Any]:
    payload, usage = envelope.payload, usage_of_calls(calls_of(envelope.pk))
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": (payload.get("assistant") or {}).get("name") or NAME,
        "gen_ai.conversation.id": str(envelope.conversation_id),
        "gen_ai.usage.input_tokens": usage["input_tokens"],
        "gen_ai.usage.output_tokens": usage["output_tokens"],
        "docent.cost_dollars": usage["cost"],
        "docent.turn": str(envelope.pk),
        "docent.status": envelope.status,
        "docent.route": payload.get("route"),
        "docent.mode": payload.get("mode"),
        "docent.decision": payload.get("quality_decision"),
        "docent.error_id": envelope.error_id,
        **_content("gen_ai.input.messages", "user", envelope.memory.get("text")),
        **_content("gen_ai.output.messages", "assistant", payload.get("response")),
    }


def _of_step(step: Step) -> dict[str, Any]:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": step.role}
    return ({} if step.role == Role.MANAGER else agent) | {
        "docent.role": step.role,
        "docent.stage": step.stage,
        "docent.step": step.number,
        "docent.attempt": step.attempt,
        "docent.status": step.status,
        "docent.queue_wait_seconds": step.wait_seconds,
        "docent.mode": step.mode,
        # The outcome that led to it; the sentence behind it may quote a reply.
        "docent.degraded": step.degraded.partition(":")[0],
        "docent.worker": step.worker,
    }


def _of_search(writes: Attributes) -> dict[str, Any]:
    stats = writes.get("search_stats") or {}
    milliseconds = stats.get("ms") or {}
    return {
        "gen_ai.operation.name": "retrieval",
        "docent.search.quality": writes.get("search_quality"),
        "docent.search.passages": stats.get("total"),
        "docent.search.used": stats.get("used"),
        "docent.search.confidence": stats.get("confidence"),
        "docent.search.cached": stats.get("cached"),
        **{f"docent.search.ms.{level}": took for level, took in milliseconds.items()},
    }


def _of_call(call: ModelCall) -> dict[str, Any]:
    request = call.request
    answered = call.model.removesuffix(f"@{call.provider}")
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": call.provider,
        # What collectors look for that know the conventions of before.
        "gen_ai.system": call.provider,
        "gen_ai.request.model": str(request.get("model", "")).rpartition("@")[0] or answered,
        "gen_ai.request.max_tokens": request.get("max_tokens"),
        "gen_ai.request.temperature": request.get("temperature"),
        "gen_ai.response.model": answered,
        "gen_ai.response.id": call.response_id,
        "gen_ai.response.finish_reasons": [call.finish_reason] if call.finish_reason else None,
        "gen_ai.response.time_to_first_chunk": call.first_token_seconds,
        "gen_ai.usage.input_tokens": call.input_tokens,
        "gen_ai.usage.output_tokens": call.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": call.cached_tokens,
        "gen_ai.prompt.name": call.prompt,
        "docent.role": call.role,
        "docent.outcome": call.outcome,
        "docent.cached": call.cached_from_id is not None,
        "docent.cost_dollars": None if call.cost is None else float(call.cost),
        "error.type": None if call.outcome == Outcome.OK else call.outcome,
        **_request(request),
        **_content("gen_ai.output.messages", "assistant", call.reply),
    }


def _of_tool(run: ToolRun) -> dict[str, Any]:
    content = {
        "gen_ai.tool.call.arguments": json.dumps(run.arguments),
        "gen_ai.tool.call.result": json.dumps(run.result),
    }
    return {
        "gen_ai.operation.name": "execute_tool",
        # Models make names up, and may say anything in them.
        "gen_ai.tool.name": run.tool if run.tool in TOOLS else tool_use.UNKNOWN,
        "docent.round": run.round,
        "docent.outcome": run.outcome,
        "docent.error_id": run.error_id,
        "error.type": None if run.outcome == ToolOutcome.OK else run.outcome,
    } | (content if settings.OTEL_CAPTURE_CONTENT else {})


def _request(request: Attributes) -> dict[str, str]:
    if not settings.OTEL_CAPTURE_CONTENT:
        return {}
    told = [_message(each["role"], each.get("content")) for each in request.get("messages", ())]
    return {"gen_ai.input.messages": json.dumps(told)}


def _content(name: str, role: str, text: str | None) -> dict[str, str]:
    """Return what was said, where the setting asks for it."""
    if not text or not settings.OTEL_CAPTURE_CONTENT:
        return {}
    return {name: json.dumps([_message(role, text)])}


def _message(role: str, text: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
