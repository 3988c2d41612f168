"""What an analysis comes to when a specialist is missing: its turn goes on, and says so."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now
from pytest_django import Settings

from agents import envelopes
from agents.contract import REGISTRY
from agents.models import Envelope, Fault, Step
from agents.names import Role, Status
from agents.steps import events, model_context, sweeper
from assistant.lab.model_server import Response
from assistant.lab.scripted_analysis import CZECH, ENGLISH, Case
from tests.agents.analysis.analysing import analysed, asked, learn, play
from tests.agents.claiming import claim
from tests.agents.turning import begun, gone_on
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)
MISSING = "Parts of this analysis could not be done, or not wholly: risks."


def waiting_for(role: Role) -> Envelope:
    """Return an analysis that has gone on until this role is to work."""
    return gone_on(begun(ENGLISH.question, collections=["en"]), role)


def completions(envelope: Envelope) -> Iterator[dict[str, Any]]:
    """What watchers were told of the steps that were done."""
    for event in events.follow(envelope.target_list, seconds=5):
        if event is None or event[1] == "workflow_complete":
            return
        if event[1] == "agent_complete":
            yield event[2]


def assert_answered_without_risks(envelope: Envelope, reason: str) -> None:
    payload = envelope.payload
    assert envelope.status == Status.COMPLETED
    assert payload["agent_outputs"]["risk_verifier"]["reason"] == reason
    assert MISSING in payload["response"]
    assert payload["citations_used"]
    (shortcoming,) = payload["shortcomings"]
    assert Fault.objects.get(envelope=envelope).code == shortcoming["detail"]


def test_a_specialist_that_nobody_takes_in_time_is_done_without(analysts: Sensible) -> None:
    envelope = waiting_for(Role.RISK_VERIFIER)
    assert sweeper.sweep()["done without"] == 0
    # As much time is left as the answer is to have.
    Envelope.objects.update(deadline=now() + model_context.for_the_answer() - timedelta(seconds=1))
    assert sweeper.sweep()["done without"] == 1
    assert sweeper.sweep()["done without"] == 0
    assert_answered_without_risks(gone_on(envelope), "time")
    told = {each["role"]: each for each in completions(envelope)}
    assert told["risk_verifier"]["reason"] == "time"
    assert "reason" not in told["compliance"]
    assert "risk_verifier" not in asked(analysts)


def test_one_whose_worker_dies_on_every_attempt_is_done_without(analysts: Sensible) -> None:
    envelope = waiting_for(Role.RISK_VERIFIER)
    (step,) = Step.objects.filter(envelope=envelope, role=Role.RISK_VERIFIER)
    for _ in range(Step.ATTEMPTS):
        assert claim(envelope.pk, step.number)
        envelope.steps.filter(pk=step.pk).update(lease_until=now() - timedelta(seconds=1))
        assert sweeper.sweep()["freed"] == 1
    assert_answered_without_risks(gone_on(envelope), "fault")


def test_one_that_raises_on_every_attempt_is_done_without(
    analysts: Sensible, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(REGISTRY[Role.RISK_VERIFIER], "model_work", broken)
    assert_answered_without_risks(analysed(), "fault")


def test_the_orchestrator_cannot_be_done_without(
    analysts: Sensible, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(REGISTRY[Role.ORCHESTRATOR], "model_work", broken)
    envelope = analysed()
    assert envelope.status == Status.FAILED
    assert envelope.error_id in envelope.payload["response"]


@pytest.mark.parametrize(
    ("case", "met"), [(ENGLISH, "met"), (CZECH, "splněno")], ids=["English", "Czech"]
)
def test_where_no_answer_cites_what_was_found_that_is_listed_with_its_verdicts(
    analysts: Sensible, case: Case, met: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    learn(case, tmp_path_factory.mktemp("pages"))
    play(analysts, case)
    unclear = {"more": [], "why": "", "answer": "That is not clear."}
    analysts.says("synthesis", Response(json.dumps(unclear)))
    envelope = analysed(case)
    payload = envelope.payload
    assert asked(analysts).count("synthesis") == 2
    assert (envelope.status, payload["route"]) == (Status.COMPLETED, "analysis")
    lines = payload["response"].splitlines()
    for rule in case.rules:
        (line,) = [each for each in lines if each.startswith(f"- {rule.text} [C")]
        assert line.endswith(f"({met})") == (rule.verdict == "compliant")
        if rule.practice:
            assert lines[lines.index(line) + 1].startswith(f"  - {rule.words} [C")
    assert {each["citation_status"] for each in payload["citations_used"]} == {"verified"}


def test_where_nobody_judged_the_findings_are_listed(analysts: Sensible) -> None:
    play(analysts, ENGLISH, [["extractor"]])
    analysts.says("synthesis", Response(status=500))
    payload = analysed().payload
    for rule in ENGLISH.rules:
        assert f"- {rule.text} [C" in payload["response"]
    assert "met)" not in payload["response"]


def test_an_analysis_is_cancelled_in_the_midst_of_its_specialists(analysts: Sensible) -> None:
    envelope = waiting_for(Role.COMPLIANCE)
    assert envelopes.cancel(envelope.pk)
    assert gone_on(envelope).status == Status.CANCELLED
    assert not envelope.steps.filter(status__in=("ready", "running")).exists()
    assert "compliance" not in asked(analysts)
