"""Event shapes: what each event of a turn holds, for the schema and for who follows."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.analysis.shapes import Estimate


class EventShape(BaseModel):
    """What the data of one event holds."""

    model_config = ConfigDict(extra="forbid")


class OfTurn(EventShape):
    """An event of the turn as a whole."""

    turn: str


class OfStep(EventShape):
    """An event of one attempt at one step."""

    step: int
    attempt: int = 1


class OfRole(OfStep):
    """One of which the role is told."""

    role: str


class WorkflowStart(OfTurn):
    """The turn has begun."""

    conversation: str


class AgentStart(OfRole):
    """A role begins a step. An `attempt` above 1 begins it anew: what it had written is void."""


class ToolUse(EventShape):
    """One call of a tool; its arguments and its result are in the trace, for staff."""

    round: int
    call: int
    tool: str
    outcome: Literal["ok", "failed"]
    seconds: float


class AgentComplete(EventShape):
    """The step is done: the attributes it wrote, who wrote them, and its calls of tools.

    That of the orchestrator says which roles will work on an analysis, step by step; that of a
    specialist that gave nothing, why.
    """

    role: str
    step: int
    seconds: float
    wrote: list[str]
    mode: str
    trajectory: list[ToolUse] = Field(default_factory=list)
    plan: list[list[str]] = Field(default_factory=list)
    estimate: Estimate | None = None  # of what the plan may come to
    # Of a specialist: model, shape, budget, time, checklist or fault.
    reason: str = ""


class ToolCallStart(OfRole):
    """The role calls a tool: the `call`-th of the step; `tool` is empty where there is none such.

    `round` counts the replies of a model in which it called some; 0 is a call by rules.
    """

    round: int
    call: int
    tool: str


class ToolCallComplete(ToolCallStart):
    """That call is over."""

    outcome: Literal["ok", "failed"]
    seconds: float


class Token(OfStep):
    """A piece of the draft. With `replaces` all before it is void, and it begins with `text`."""

    text: str
    replaces: bool


class Error(OfRole):
    """A step failed and will be tried again."""


class Gap(EventShape):
    """Events from before are gone; the reply is not."""


class WorkflowComplete(OfTurn):
    """The turn has ended; `reply` is what `POST /api/chat/` returns. The stream ends."""

    status: str
    error_id: str = ""
    reply: dict[str, Any] = Field(default_factory=dict)
    detail: str = ""  # of a turn that was forgotten, in place of a reply


EVENTS: dict[str, type[EventShape]] = {
    "workflow_start": WorkflowStart,
    "agent_start": AgentStart,
    "agent_complete": AgentComplete,
    "tool_call_start": ToolCallStart,
    "tool_call_complete": ToolCallComplete,
    "token": Token,
    "error": Error,
    "gap": Gap,
    "workflow_complete": WorkflowComplete,
}
EXAMPLE = """id: 1763730000000-0
event: token
data: {"step": 12, "attempt": 1, "text": "A trip is booked", "replaces": false}

"""


def description() -> str:
    """Return what may come, in words for the schema."""
    lines = (
        f"- `{name}` {{{', '.join(shape.model_fields)}}}: {' '.join((shape.__doc__ or '').split())}"
        for name, shape in EVENTS.items()
    )
    return "Server-sent events; `data` is a JSON object on one line.\n\n" + "\n".join(lines)
