"""Deaths: a worker is killed at each moment around its tools, and changes things once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from agents.models import Envelope, ModelCall, Step, ToolRun
from agents.names import Role
from agents.steps.records import Claim
from tests.agents.tools.bench import ROLE, Bench, asks, effects, want
from tests.e2e.conftest import CHECKOUT, FAILPOINTS
from tests.scripted import Response, Scripted

# The tools are used in order: `look`, which changes nothing, then `refund`.
MOMENTS = (
    "after_journal",  # the model's reply is stored
    "before_calls",
    "after_use",  # of `look`; that it was used is not written down
    "after_call",  # it is, and nobody knows of it yet
    "after_use",  # of `refund`: it is done, and neither written down nor committed
    "before_commit_of_effect",  # nor committed
    "after_call",
    "after_journal",  # the answer
    "before_finish",
)
# Tried with every change: before the effect, around it and after it.
ALWAYS = ("after_journal", "before_commit_of_effect", "before_finish")


def work(
    models: Scripted, deaths: Path, module: str = "tests.agents.tools.dying", **others: str
) -> int:
    """Have a process work on the step, with other settings; return how it ended."""
    environment = (
        os.environ
        | others
        | {
            "PYTHONPATH": f"{FAILPOINTS}:{CHECKOUT}",
            "FAILPOINTS": str(deaths),
            "SWITCHES": str(deaths.with_name("switches")),
        }
    )
    name = str(connection.settings_dict["NAME"])
    command = [sys.executable, "-m", module, name, models.server.base_url]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, timeout=60, check=False, capture_output=True
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr.decode()
    return done.returncode


def free(claim: Claim, role: Role = ROLE) -> None:
    """Give the step of a dead worker back, as the sweeper does."""
    Step.objects.filter(envelope=claim.envelope_id, role=role, status="running").update(
        status="ready", lease_token=None, attempt=1
    )


@pytest.mark.parametrize(
    "moments", [ALWAYS, pytest.param(MOMENTS, marks=pytest.mark.every_moment)], ids=["some", "all"]
)
def test_a_worker_killed_at_moments_around_its_tools_asks_once_and_changes_once(
    models: Scripted, bench: Bench, claim: Claim, tmp_path: Path, moments: tuple[str, ...]
) -> None:
    models.says(
        "probe",
        asks(want("look", 1, query="a"), want("refund", 2, invoice="I-1", amount=20)),
        Response("It is paid back."),
    )
    deaths = tmp_path / "deaths"
    deaths.write_text("\n".join(f"{moment} {ROLE}" for moment in moments))
    (tmp_path / "switches").write_text("{}")
    for _ in moments:
        free(claim)
        assert work(models, deaths) == -signal.SIGKILL
    free(claim)
    assert work(models, deaths) == 0
    assert deaths.read_text() == ""
    assert effects() == 1
    assert len(models.server.ledger) == ModelCall.objects.count() == 2
    assert list(ToolRun.objects.order_by("number").values_list("tool", "outcome")) == [
        ("look", "ok"), ("refund", "ok"),
    ]  # fmt: skip
    step = Step.objects.get(envelope=claim.envelope_id, role=ROLE)
    assert (step.status, step.output) == ("done", {"response": "It is paid back."})
    assert Envelope.objects.get().faults.count() == 0
