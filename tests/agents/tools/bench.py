"""Bench: tools of these tests alone, and steps at which they are called."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from django.conf import settings
from pydantic import Field

from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.models import Envelope, Price, Step
from agents.names import Role
from agents.steps.records import Claim
from agents.tools.tool import (
    TOOLS,
    Arguments,
    Caller,
    Effect,
    Finding,
    RefusedArguments,
    tool,
)
from agents.tools.toolbox import Toolbox
from assistant.lab.scripted_tools import asks as asks
from assistant.lab.scripted_tools import want as want
from tests.agents.claiming import claimed

ROLE = Role.EVALUATOR


class Search(Arguments):
    """What to look for."""

    query: str = Field(max_length=100)


class Amount(Arguments):
    """How much of what is to be paid back, and why."""

    invoice: str
    amount: float = Field(gt=0, le=1000)
    note: str = ""


@dataclass
class Bench:
    """What the tools of a test do, and how often they did it."""

    used: list[tuple[str, Any]] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)  # raised by the next uses, one each
    hang: threading.Event | None = None  # tools that hang go on when it is set
    held: threading.Event = field(default_factory=threading.Event)  # one of them hangs

    def note(self, name: str, arguments: Arguments, caller: Caller) -> None:
        """Note a use; raise or hang if that is to be."""
        self.used.append((name, arguments.model_dump()))
        self.callers.append(caller)
        if self.faults:
            raise self.faults.pop(0)
        if self.hang:
            self.held.set()
            self.hang.wait(20)

    def names(self) -> list[str]:
        """Return the names of the tools that were used, in order."""
        return [name for name, _ in self.used]


@contextmanager
def laid_out() -> Iterator[Bench]:
    """Have the tools of these tests declared, and no others."""
    bench, before = Bench(), dict(TOOLS)
    TOOLS.clear()
    try:
        declare_searches(bench)
        declare_effects(bench)
        yield bench
    finally:
        TOOLS.clear()
        TOOLS.update(before)


def declare_searches(bench: Bench) -> None:
    """Declare tools that only look."""

    @tool(roles=[ROLE], timeout=0.5, retries=1, critical=True)
    def look(arguments: Search, caller: Caller) -> dict[str, Any]:
        """Look something up."""
        bench.note("look", arguments, caller)
        return {"found": arguments.query, "rate": float("nan")}

    @tool(roles=[ROLE])
    def scan(arguments: Search, caller: Caller) -> Finding:
        """Look for nothing that is there."""
        bench.note("scan", arguments, caller)
        return Finding([], is_empty=True)

    @tool(roles=[ROLE])
    def widen(arguments: Search, caller: Caller) -> Finding:
        """Look around what was found."""
        bench.note("widen", arguments, caller)
        return Finding([], adds_nothing=True)

    @tool(roles=[ROLE])
    def doze(arguments: Search, caller: Caller) -> str:
        """Take a moment."""
        bench.note("doze", arguments, caller)
        time.sleep(0.3)
        return arguments.query * 60

    @tool(roles=[Role.QUALITY])
    def judge(arguments: Search, caller: Caller) -> str:
        """Judge something: the tool of another role."""
        bench.note("judge", arguments, caller)
        return "good"


def declare_effects(bench: Bench) -> None:
    """Declare tools that change something, here and elsewhere."""

    @tool(roles=[ROLE], timeout=0.8, effect=Effect.HERE, identity=["invoice", "amount"])
    def refund(arguments: Amount, caller: Caller) -> dict[str, Any]:
        """Pay back an amount of an invoice."""
        if arguments.invoice == "another's":
            raise RefusedArguments("There is no such invoice of yours.")
        price = Price.objects.create(
            model=f"{arguments.invoice}/{uuid4()}", input_per_million=1, output_per_million=1
        )
        bench.note("refund", arguments, caller)
        return {"case": price.pk}

    @tool(roles=[ROLE], effect=Effect.ELSEWHERE)
    def order(arguments: Search, caller: Caller) -> str:
        """Order something from another system."""
        bench.note("order", arguments, caller)
        return "ordered"


def effects() -> int:
    """Return how many refunds there are, whoever made them."""
    return Price.objects.count()


def step_of(envelope: Envelope, role: Role = ROLE) -> Claim:
    """Return a new step of the turn for the role, claimed."""
    envelope.steps.filter(status="ready").update(status="done")
    number = envelope.steps.count() + 1
    Step.objects.create(envelope=envelope, number=number, batch=1, role=role, stage="search")
    Envelope.objects.filter(pk=envelope.pk).update(step_count=number)
    return claimed(envelope.pk, number)


def again(claim: Claim) -> Claim:
    """Return the next attempt at a step whose worker died."""
    step = Step.objects.get(envelope_id=claim.envelope_id, number=claim.number)
    step.status, step.lease_token = Step.Status.READY, None
    step.save()
    return claimed(claim.envelope_id, claim.number)


def outcomes(toolbox: Toolbox) -> list[tuple[str, str]]:
    """Return what each call of this attempt came to."""
    return [(run.tool, run.outcome) for run in toolbox.runs]


def model_at(claim: Claim, max_tokens: int = 100_000) -> Model:
    """Return the scripted model for a step."""
    subject = Subject(
        f"{claim.envelope_id}/{claim.number}",
        claim.role,
        envelope_id=claim.envelope_id,
        step_number=claim.number,
    )
    choice = replace(settings.MODELS[claim.role], model="fake@scripted", max_tokens=max_tokens)
    return Model(choice, subject, deadline=claim.deadline)
