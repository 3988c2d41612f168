"""Telemetry: turns as traces of OpenTelemetry, by its conventions for generative AI.

A trace is made of what PostgreSQL keeps of a turn, once it has ended: so it is whole whatever
process did what, workers do nothing for it, and a collector that is away is nobody's concern. The
SDK holds a bounded number of spans for the collector and drops what is more.

The conventions: https://github.com/open-telemetry/semantic-conventions-genai.
"""

import json
import logging
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from queue import Full, Queue
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.models.functions import JSONObject
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
from agents.trace.usage import REPLAY

log = logging.getLogger(__name__)

NAME = "docent"
# Rounds of the sweeper, of which each may bring hundreds of turns.
MOST_WAITING = 20
# Turns that are read at a time: asking for each alone costs more than all else.
AT_ONCE = 25
FAILED = {Status.FAILED, Status.EXPIRED}
Attributes = Mapping[str, Any]
# Of texts and passages, which are most of these rows, no more is read than is told.
ENVELOPES = Envelope.objects.annotate(
    said=JSONObject(
        route="payload__route",
        mode="payload__mode",
        decision="payload__quality_decision",
        assistant="payload__assistant__name",
    )
).defer("payload", "memory")
ASKED = JSONObject(
    model="request__model",
    max_tokens="request__max_tokens",
    temperature="request__temperature",
)
FOUND = JSONObject(quality="output__search_quality", stats="output__search_stats")
TEXTS_OF_CALL = ("request", "reply", "tool_calls")


class TurnIds(RandomIdGenerator):
    """A trace that nobody else began has the id of its turn, without the hyphens."""

    turn = uuid.UUID(int=1)

    def generate_trace_id(self) -> int:
        """Return the id of the trace that begins."""
        return self.turn.int


class Telemetry(threading.Thread):
    """A thread that is told which turns have ended; set up by the environment's OTEL_* variables.

    What goes wrong in it ends it alone.
    """

    def __init__(self) -> None:
        super().__init__(name="telemetry", daemon=True)
        self.ended: Queue[list[uuid.UUID]] = Queue(MOST_WAITING)
        self.ids = TurnIds()
        self.provider = TracerProvider(
            resource=_resource(), id_generator=self.ids, shutdown_on_exit=False
        )
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self.provider.get_tracer(NAME)

    def offer(self, turns: list[uuid.UUID]) -> None:
        """Have traces made of turns that have ended, without waiting for it."""
        try:
            self.ended.put_nowait(turns)
        except Full:
            log.warning("%s turns have no trace: too many wait", len(turns))

    def run(self) -> None:
        """Make what is offered, until the process ends."""
        while True:
            turns = self.ended.get()
            try:
                self.tell(turns)
            except Error as error:
                log.warning("%s turns may have no trace: %s", len(turns), error)
            connection.close()

    def tell(self, turns: Sequence[uuid.UUID]) -> None:
        """Make the traces of turns that have ended."""
        for place in range(0, len(turns), AT_ONCE):
            self._turns(turns[place : place + AT_ONCE])

    def _turns(self, turns: Sequence[uuid.UUID]) -> None:
        calls = ModelCall.objects.filter(envelope__in=turns).exclude(subject__startswith=REPLAY)
        calls_of = _by_turn(calls.annotate(asked=ASKED).defer(*TEXTS_OF_CALL))
        runs_of = _by_turn(ToolRun.objects.filter(envelope__in=turns))
        steps = Step.objects.filter(envelope__in=turns).exclude(started=None)
        steps_of = _by_turn(steps.annotate(found=FOUND).defer("output"))
        for envelope in ENVELOPES.filter(pk__in=turns):
            key = envelope.pk
            self._turn(envelope, steps_of[key], calls_of[key], runs_of[key])

    def _turn(self, envelope: Any, steps: list[Any], calls: list[Any], runs: list[ToolRun]) -> None:
        self.ids.turn = envelope.pk
        outer = TraceContextTextMapPropagator().extract({"traceparent": envelope.traceparent})
        attributes = _of_turn(envelope, calls)
        name = f"invoke_agent {attributes['gen_ai.agent.name']}"
        root = self._start(name, envelope.create_ts, attributes, outer, SpanKind.SERVER)
        inside = set_span_in_context(root)
        for step in steps:
            own_calls = [call for call in calls if call.step_number == step.number]
            own_runs = [run for run in runs if run.step_number == step.number]
            self._step(step, own_calls, own_runs, inside)
        if envelope.status in FAILED:
            root.set_status(StatusCode.ERROR, envelope.error_id)
        root.end(_nanoseconds(envelope.update_ts))

    def _step(
        self, step: Any, calls: Sequence[Any], runs: Sequence[ToolRun], turn: Context
    ) -> None:
        name = "route" if step.role == Role.MANAGER else f"invoke_agent {step.role}"
        ended = step.ended or step.started
        span = self._start(name, step.started, _of_step(step), turn)
        inside = set_span_in_context(span)
        if step.role == Role.SEARCH and step.status == Step.Status.DONE:
            search = self._start("retrieval", step.started, _of_search(step.found), inside)
            search.end(_nanoseconds(ended))
        for call in calls:
            self._call(call, inside)
        for run in runs:
            self._tool(run, inside)
        if step.status == Step.Status.QUARANTINED:
            span.set_status(StatusCode.ERROR, step.error.partition(":")[0])
        span.end(_nanoseconds(ended))

    def _call(self, call: Any, step: Context) -> None:
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


def _by_turn(rows: Iterable[Any]) -> dict[uuid.UUID, list[Any]]:
    by_turn: dict[uuid.UUID, list[Any]] = defaultdict(list)
    for row in rows:
        by_turn[row.envelope_id].append(row)
    return by_turn


def _resource() -> Resource:
    """What the environment says of this service; where it says no name, Docent's."""
    said = Resource.create()
    is_named = not str(said.attributes["service.name"]).startswith("unknown_service")
    return said if is_named else said.merge(Resource({"service.name": NAME}))


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000


def _of_turn(envelope: Any, calls: Sequence[ModelCall]) -> dict[str, Any]:
    said = envelope.said
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": said["assistant"] or NAME,
        "gen_ai.conversation.id": str(envelope.conversation_id),
        "gen_ai.usage.input_tokens": sum(call.input_tokens or 0 for call in calls),
        "gen_ai.usage.output_tokens": sum(call.output_tokens or 0 for call in calls),
        "docent.cost_dollars": float(sum(call.cost or 0 for call in calls)),
        "docent.turn": str(envelope.pk),
        "docent.status": envelope.status,
        "docent.route": said["route"],
        "docent.mode": said["mode"],
        "docent.decision": said["decision"],
        "docent.error_id": envelope.error_id,
    }
    if not settings.OTEL_CAPTURE_CONTENT:
        return attributes
    asked, answered = envelope.memory.get("text"), envelope.payload.get("response")
    return attributes | {
        "gen_ai.input.messages": _messages(("user", asked)),
        "gen_ai.output.messages": _messages(("assistant", answered)),
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


def _of_search(found: Attributes) -> dict[str, Any]:
    stats = found["stats"] or {}
    milliseconds = stats.get("ms") or {}
    return {
        "gen_ai.operation.name": "retrieval",
        "docent.search.quality": found["quality"],
        "docent.search.passages": stats.get("total"),
        "docent.search.used": stats.get("used"),
        "docent.search.confidence": stats.get("confidence"),
        "docent.search.cached": stats.get("cached"),
        **{f"docent.search.ms.{level}": took for level, took in milliseconds.items()},
    }


def _of_call(call: Any) -> dict[str, Any]:
    asked = call.asked
    answered = call.model.removesuffix(f"@{call.provider}")
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": call.provider,
        # What collectors look for that know the conventions of before.
        "gen_ai.system": call.provider,
        "gen_ai.request.model": str(asked["model"] or "").rpartition("@")[0] or answered,
        "gen_ai.request.max_tokens": asked["max_tokens"],
        "gen_ai.request.temperature": asked["temperature"],
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
    }
    if not settings.OTEL_CAPTURE_CONTENT:
        return attributes
    told = [(each["role"], each.get("content")) for each in call.request.get("messages", ())]
    return attributes | {
        "gen_ai.input.messages": _messages(*told),
        "gen_ai.output.messages": _messages(("assistant", call.reply)),
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


def _messages(*said: tuple[str, Any]) -> str:
    """Return what was said, by whom, as the conventions have it."""
    parts = [(role, [{"type": "text", "content": text}]) for role, text in said if text]
    return json.dumps([{"role": role, "parts": part} for role, part in parts])
