"""Deaths elsewhere: a worker is killed at each moment around a case in another system: one case."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.models import Envelope, ModelCall, Step, ToolRun
from agents.names import Role
from agents.steps.records import Claim
from assistant.lab.billing_server import BillingServer, serving
from tests.agents.tools.bench import asks, step_of, want
from tests.agents.tools.test_deaths import free, work
from tests.conftest import Begin
from tests.scripted import Response, Scripted

KEY = "a-secret-key"
WISH = want("open_refund_case", invoice="INV-20251001", amount="45", reason="overcharge")
# Each moment, with how often the server was asked by then, how many cases it has, and how many
# calls of tools are written down.
DEATHS = (
    ("after_journal", 0, 0, 0),  # the model's reply is stored
    ("before_calls", 0, 0, 0),
    ("before_commit_of_effect", 0, 0, 0),  # the step is ours, and nobody was asked yet
    ("after_use", 1, 1, 0),  # the case is open, and nothing of it is written down
    ("after_call", 2, 1, 1),
    ("after_journal", 2, 1, 1),  # the answer
    ("before_finish", 2, 1, 1),
)
# Tried with every change: the moments around the request.
ALWAYS = DEATHS[2:5]


@pytest.fixture
def server() -> Iterator[BillingServer]:
    """The other system."""
    with serving(KEY) as server:
        yield server


@pytest.fixture
def claim(begin: Begin) -> Claim:
    """A step of billing for a customer of the other system."""
    return step_of(begin(user_id="u123"), Role.BILLING)


@pytest.mark.parametrize(
    "moments", [ALWAYS, pytest.param(DEATHS, marks=pytest.mark.every_moment)], ids=["some", "all"]
)
def test_a_worker_killed_around_a_case_opens_one_elsewhere(
    models: Scripted,
    server: BillingServer,
    claim: Claim,
    tmp_path: Path,
    moments: tuple[tuple[str, int, int, int], ...],
) -> None:
    models.says("billing", asks(WISH), Response("Your case is open."))
    others = {
        "module": "tests.agents.support.billing_worker",
        "BILLING_SYSTEM": "agents.billing.rest.RestBilling",
        "BILLING_API_URL": server.address,
        "BILLING_API_KEY": KEY,
    }
    deaths = tmp_path / "deaths"
    (tmp_path / "switches").write_text("{}")
    for moment, *counts in moments:
        deaths.write_text(f"{moment} {Role.BILLING}")
        free(claim, Role.BILLING)
        assert work(models, deaths, **others) == -signal.SIGKILL
        found = [len(server.ledger), len(server.books.cases), ToolRun.objects.count()]
        assert (moment, found) == (moment, counts)
    free(claim, Role.BILLING)
    assert work(models, deaths, **others) == 0
    (case,) = server.books.cases.values()
    assert len({asked.key for asked in server.ledger}) == 1
    assert len(models.server.ledger) == ModelCall.objects.count() == 2
    run = ToolRun.objects.get()
    assert (run.outcome, (run.result or {})["case"]) == ("ok", case["case"])
    step = Step.objects.get(envelope=claim.envelope_id, role=Role.BILLING)
    assert step.status == "done"
    assert (step.output or {})["state_updates"]["billing_case_id"] == case["case"]
    assert Envelope.objects.get().faults.count() == 0
