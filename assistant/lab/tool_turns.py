"""Tool turns: a turn for each way to use tools, one after another, and what came of it.

The steps are done in threads of this process, with leases, bells and deadlines as everywhere; the
model and the billing system are servers of ours. `reasons` says what is bad.
"""

import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.conf import settings
from django.db import connection
from django.test import override_settings
from django.utils.timezone import now
from rich.table import Table

from agents import envelopes
from agents.billing.rest import RestBilling
from agents.billing.system import billing_system, loaded
from agents.llm import breaker
from agents.llm.requests import Choice
from agents.models import Envelope, ToolRun
from agents.names import Role
from agents.steps import events, presence
from agents.tools.tool import ToolOutcome
from agents.trace.tool_use import tool_figures
from assistant.lab import billing_server
from assistant.lab.billing_server import BillingServer, Books
from assistant.lab.fault_turns import GRACE_SECONDS, UNCACHED, Occupied, working
from assistant.lab.model_server import Call, ModelServer, Response, serving
from assistant.lab.scripted_tools import USER_ID, WISH, Line, laid_out
from knowledge.providers import Provider

PROVIDER = "lab"
KEY = "a-key-that-nobody-reads"
AGENTS = 4
# A turn that is late is ended by the sweeper, which looks every second.
LATE_SECONDS = 5.0
# Ten rounds, the last answer, and one more attempt at it.
MOST_CALLS = 12
# What is none of the customer's business.
INTERNAL = re.compile(
    r"Traceback|Error\b|\bhttp|<result|[{}]|\b(?:get|open)_\w+|\bu\d{3}\b|" + re.escape(KEY)
)

Watch = Callable[[int, int], None]


@dataclass
class Script:
    """What the model says in the turn that is under way."""

    line: Line
    calls: int = 0

    def reply(self, call: Call) -> Response:
        """Return what is said to the next call."""
        self.calls += 1
        return self.line.reply(call, self.calls - 1)


@dataclass(frozen=True)
class Row:
    """What came of one line."""

    line: str
    status: str
    mode: str
    outcomes: dict[str, int]  # what the calls that the model wanted came to
    calls: dict[str, int]  # all of them, by tool and outcome; rules call tools as well
    model_calls: int
    asked: int  # how often the billing system was
    cases: int
    metrics: dict[str, int]  # as GET /metrics counts them, by tool and outcome
    text: str
    seconds: float
    reasons: list[str]  # why it is bad; empty: it is good


def measure(lines: Sequence[Line], watch: Watch) -> list[Row]:
    """Ask for a refund for each line and return what came of it. Raises Occupied."""
    if presence.consumers():
        raise Occupied("Workers are running that would do these turns; stop them first.")
    script = Script(lines[0])
    rows: list[Row] = []
    with (
        serving(lambda call: script.reply(call)) as models,
        billing_server.serving(KEY) as billing,
        settings_for(models, billing),
        laid_out(),
        working(AGENTS),
    ):
        # The first turn waits for what is loaded on first use.
        _measured(lines[0], script, billing)
        for line in lines:
            script = Script(line)
            billing.books, billing.mode = Books(), line.mode
            billing.ledger.clear()
            breaker.forget(PROVIDER)
            rows.append(_measured(line, script, billing))
            watch(len(rows), len(lines))
    return rows


@contextmanager
def settings_for(models: ModelServer, billing: BillingServer) -> Iterator[None]:
    """Have billing ask these servers; nothing is answered from a cache."""
    with override_settings(
        ROUTES=["billing"],
        PROVIDERS=settings.PROVIDERS | {PROVIDER: Provider(PROVIDER, models.base_url)},
        BILLING_SYSTEM="agents.billing.rest.RestBilling",
        BILLING_API_URL=billing.address,
        BILLING_API_KEY=KEY,
        **UNCACHED,
    ):
        loaded.cache_clear()
        system = billing_system()
        try:
            yield
        finally:
            loaded.cache_clear()
            if isinstance(system, RestBilling):
                system.close()


def models_for(line: Line) -> dict[str, Choice]:
    """Have billing alone ask a model."""
    choices = {asker: replace(each, model="", second="") for asker, each in settings.MODELS.items()}
    billing = choices[Role.BILLING]
    most = line.tokens or billing.max_tokens
    return choices | {Role.BILLING: replace(billing, model=f"fake@{PROVIDER}", max_tokens=most)}


def _measured(line: Line, script: Script, billing: BillingServer) -> Row:
    began, begin = now(), time.monotonic()
    deadline = line.deadline or settings.TURN_DEADLINE_SECONDS
    with override_settings(TURN_DEADLINE_SECONDS=deadline, MODELS=models_for(line)):
        envelope = ask(WISH)
    seconds = time.monotonic() - begin
    runs = list(ToolRun.objects.filter(envelope=envelope).order_by("pk"))
    row = Row(
        line=line.name,
        status=envelope.status,
        mode=envelope.payload.get("mode", ""),
        outcomes=dict(Counter(run.outcome for run in runs if run.model_call_id)),
        calls=dict(Counter(map(_came_to, runs))),
        model_calls=script.calls,
        asked=len(billing.ledger),
        cases=len(billing.books.cases),
        metrics=dict(_counted(tool_figures(began))),
        text=envelope.payload.get("response") or "",
        seconds=round(seconds, 1),
        reasons=[],
    )
    connection.close()
    return replace(row, reasons=[*reasons(line, row, deadline)])


def ask(text: str) -> Envelope:
    """Ask for the customer and return the turn once it has ended. Raises TimeoutError."""
    envelope = envelopes.start(
        {"text": text, "user_id": USER_ID, "owner": "lab"},
        conversation_id=uuid.uuid4(),
        message_id=uuid.uuid4(),
    )
    connection.close()
    patience = settings.TURN_DEADLINE_SECONDS + GRACE_SECONDS
    for event in events.follow(envelope.target_list, seconds=patience):
        if event and event[1] == "workflow_complete":
            envelope.refresh_from_db()
            return envelope
    raise TimeoutError("The turn did not end.")


def _came_to(run: ToolRun) -> str:
    again = " again" if run.repeats_id else ""
    attempts = f" after {run.attempts}" if run.attempts > 1 else ""
    return f"{run.tool} {run.outcome}{again}{attempts}"


def _counted(figures: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """Yield what is counted that is not 0, as `tool outcome`."""
    for row in figures:
        for outcome in ToolOutcome:
            if count := row[f"{outcome}_calls"]:
                yield f"{row['name']} {outcome}", count


def reasons(line: Line, row: Row, deadline: float) -> Iterator[str]:
    """Yield why it is bad: the rules of the measurement, a sentence each."""
    if row.status != line.status:
        yield f"The turn is {row.status}."
    if row.seconds > deadline + LATE_SECONDS:
        yield f"The turn took {row.seconds:.0f} s, and may take {deadline:g}."
    if not re.search(line.reads, row.text, re.DOTALL):
        yield "The customer does not read what happened."
    if found := INTERNAL.search(row.text):
        yield f"The customer reads {found[0]!r}."
    if row.cases != line.cases:
        yield f"The billing system has {row.cases} cases."
    if row.model_calls > MOST_CALLS:
        yield f"The model was asked {row.model_calls} times."
    if row.outcomes != dict(line.outcomes):
        yield f"The model's calls came to {row.outcomes}."


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the rows, and how many are good."""
    bad = [row.line for row in rows if row.reasons]
    return {
        "lines": len(rows),
        "good": len(rows) - len(bad),
        "bad": bad,
        "rows": [asdict(row) for row in rows],
    }


def table(figures: Mapping[str, Any]) -> Table:
    """Return a row per line."""
    title = f"{figures['good']} of {figures['lines']} good"
    found = Table(
        "the model", "calls came to", "model", "system", "cases", "the customer reads", "metrics",
        "s", "", title=title, title_justify="left", show_lines=True,
    )  # fmt: skip
    for row in figures["rows"]:
        found.add_row(
            row["line"],
            _listed(row["calls"]),
            str(row["model_calls"]),
            str(row["asked"]),
            str(row["cases"]),
            row["text"],
            _listed(row["metrics"]),
            f"{row['seconds']:.1f}",
            "\n".join(row["reasons"]) or "good",
            style="red" if row["reasons"] else "",
        )
    return found


def _listed(counts: Mapping[str, int]) -> str:
    return "\n".join(f"{count} {name}" for name, count in counts.items())
