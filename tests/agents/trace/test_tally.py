"""Tally: turns are counted once, and stay counted when they are forgotten."""

from decimal import Decimal
from uuid import uuid4

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from agents.models import Envelope, ModelCall
from agents.names import Role, Status
from agents.trace import tally
from conversations.erasure import forget
from conversations.models import Conversation
from tests.agents.turning import turn
from tests.conftest import Begin
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)
RESPONSE = {"role": "response", "model": "fake", "provider": "scripted"}


class Shown:
    """What Prometheus is shown, by name and labels."""

    def __init__(self, client: Client) -> None:
        text = client.get("/metrics").content.decode()
        families = [*text_string_to_metric_families(text)]
        self.samples = [sample for family in families for sample in family.samples]

    def all(self, name: str, **labels: str) -> list[Sample]:
        """The samples of this name that have these labels, among others."""
        return [
            each
            for each in self.samples
            if each.name == name and labels.items() <= each.labels.items()
        ]

    def __call__(self, name: str, **labels: str) -> float:
        (sample,) = self.all(name, **labels)
        return sample.value


def test_a_turn_is_shown_in_every_metric_with_the_figures_of_its_rows(
    client: Client, sensible: Sensible
) -> None:
    envelope = turn("Where does the water go when I press the button?", collections=["teapot"])
    assert tally.count_ended() == [envelope.pk]
    assert tally.count_ended() == []
    shown, said = Shown(client), envelope.payload

    outcome = {"status": envelope.status, "route": said["route"]}
    decided = {"mode": said["mode"], "decision": said["quality_decision"]}
    assert shown("docent_turns_ended_total", **outcome, **decided) == 1
    took = (envelope.update_ts - envelope.create_ts).total_seconds()
    assert shown("docent_turn_seconds_sum", **outcome) == took
    cited = [each["citation_status"] for each in said["citations_used"]]
    assert cited
    for status in set(cited):
        assert shown("docent_citations_total", status=status) == cited.count(status)
    assert shown("docent_searches_total", quality=said["search_quality"]) == 1

    for role in {step.role for step in envelope.steps.all()}:
        steps = envelope.steps.filter(role=role)
        ran = sum(step.run_seconds or 0 for step in steps)
        assert shown("docent_step_run_seconds_count", role=role) == steps.count()
        assert shown("docent_step_run_seconds_sum", role=role) == pytest.approx(ran)
        assert shown("docent_step_wait_seconds_bucket", role=role, le="+Inf") == steps.count()
        assert shown("docent_steps_ended_total", role=role, status="done") == steps.count()

    (call,) = ModelCall.objects.filter(envelope=envelope, role=Role.RESPONSE)
    assert shown("docent_model_calls_total", **RESPONSE, outcome="ok") == 1
    assert shown("docent_model_tokens_total", **RESPONSE, direction="input") == call.input_tokens
    assert shown("docent_model_tokens_total", **RESPONSE, direction="output") == call.output_tokens
    assert shown("docent_model_seconds_sum", **RESPONSE) == call.seconds
    assert shown("docent_model_first_token_seconds_sum", **RESPONSE) == call.first_token_seconds
    assert shown("docent_model_calls_unpriced_total", **RESPONSE) == 1
    assert shown.all("docent_model_cost_dollars_total") == []


def ended(envelope: Envelope, status: Status = Status.COMPLETED) -> Envelope:
    Envelope.objects.filter(pk=envelope.pk).update(status=status)
    return envelope


def call_of(envelope: Envelope | None, number: int, **values: object) -> ModelCall:
    """The row of a call that is over."""
    return ModelCall.objects.create(
        **{
            "subject": f"{envelope and envelope.pk}/{number}",
            "number": number,
            "envelope": envelope,
            "role": Role.RESPONSE,
            "prompt": "answer",
            "prompt_hash": "x",
            "model": "fake@scripted",
            "provider": "scripted",
            "request": {},
            "request_hash": "x",
            "outcome": "ok",
            **values,
        }
    )


def test_calls_count_by_what_they_cost_and_came_to(client: Client, begin: Begin) -> None:
    envelope = ended(begin())
    failed = [{"model": "fake@scripted", "outcome": "timeout", "seconds": 1, "error": ""}]
    paid = call_of(envelope, 1, cost=Decimal("0.25"), attempts=failed)
    call_of(envelope, 2, cached_from=paid, cost=0)
    call_of(envelope, 3, outcome="rate_limited")
    call_of(envelope, 4, outcome="sent")
    # Of a document; it may still turn out to be of no use.
    fresh = call_of(None, 5, cost=Decimal("0.5"))
    tally.count_ended()
    shown = Shown(client)
    assert shown("docent_model_cost_dollars_total", **RESPONSE) == 0.25
    assert shown("docent_model_attempts_failed_total", **RESPONSE, outcome="timeout") == 1
    calls = shown.all("docent_model_calls_total")
    outcomes = {each.labels["outcome"]: each.value for each in calls}
    assert outcomes == {"ok": 1, "cached": 1, "rate_limited": 1}

    ModelCall.objects.filter(pk=fresh.pk).update(created=fresh.created - tally.SETTLED)
    tally.count_ended()
    assert Shown(client)("docent_model_cost_dollars_total", **RESPONSE) == 0.75


def test_what_is_forgotten_before_it_was_counted_is_counted(client: Client, begin: Begin) -> None:
    conversation = Conversation.objects.create(session=str(uuid4()))
    other = ended(begin())
    envelope = ended(begin(), Status.CANCELLED)
    Envelope.objects.filter(pk=envelope.pk).update(conversation_id=conversation.pk)
    forget(conversation)
    assert Shown(client)("docent_turns_ended_total", status="cancelled") == 1
    assert tally.count_ended() == [other.pk]
    shown = Shown(client)
    assert shown("docent_turns_ended_total", status="cancelled") == 1
    assert shown("docent_turns_ended_total", status="completed") == 1


def test_a_value_falls_into_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    sums = tally.Sums()
    for seconds in (-1.0, 0.005, 0.0051, 1000.0):
        sums.observe(tally.WAIT, "search", seconds=seconds)
    sums.observe(tally.WAIT, "search", seconds=None)
    for _ in range(2):
        sums.store()
    (family,) = (each for each in tally.families() if each.name == tally.WAIT.name)
    counts = {sample.labels.get("le"): sample.value for sample in family.samples}
    assert (counts["0.005"], counts["0.01"], counts["120.0"], counts["+Inf"]) == (4, 6, 6, 8)
