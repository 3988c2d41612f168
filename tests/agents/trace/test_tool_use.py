"""Tool use: figures, traces and pages of what tools did."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils.timezone import now

from agents.llm.requests import ToolCall
from agents.models import Envelope, ToolRun
from agents.tools.toolbox import Toolbox
from agents.trace.tool_use import role_figures, tool_figures, used_tools
from agents.trace.trace import trace
from conversations.answers import reply
from tests.agents.tools.bench import Bench, laid_out, step_of, want
from tests.agents.trace.test_metrics import samples
from tests.conftest import Begin


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Tools of these tests alone."""
    with laid_out() as tools:
        yield tools


@pytest.fixture
def turn(begin: Begin, bench: Bench) -> Envelope:
    """A turn in which tools worked, failed, and were made up."""
    envelope = begin()
    toolbox = Toolbox.of(step_of(envelope))
    bench.faults = [OSError("x")]
    toolbox.call_all([want("scan", query="secret")])
    toolbox.call_all(
        [
            want("look", query="secret"),
            want("fly_away", query="secret"),
            ToolCall("a", "look", "{"),
            want("refund", invoice="1", amount=1),
            want("refund", invoice="1", amount=1),
        ]
    )
    return envelope


def test_each_tool_has_its_figures_and_made_up_names_have_them_together(turn: Envelope) -> None:
    rows = {row["name"]: row for row in tool_figures(now() - timedelta(hours=1))}
    assert set(rows) == {"scan", "look", "refund", "(unknown)"}
    assert (rows["look"]["calls"], rows["look"]["validation_rate"]) == (2, 0.5)
    assert (rows["scan"]["execution_calls"], rows["scan"]["failure_rate"]) == (1, 1.0)
    assert (rows["(unknown)"]["hallucination_rate"], rows["refund"]["failures"]) == (1.0, 0)
    assert tool_figures(now() + timedelta(hours=1)) == []


def test_each_role_has_its_figures(turn: Envelope) -> None:
    (row,) = role_figures(now() - timedelta(hours=1))
    assert row["calls"] == 6
    assert (row["hallucination_calls"], row["validation_calls"]) == (1, 1)
    assert row["hallucination_rate"] == row["validation_rate"] == pytest.approx(1 / 6)
    assert role_figures(now() + timedelta(hours=1)) == []


def test_prometheus_reads_them(client: Client, turn: Envelope) -> None:
    values = samples(client)
    assert values["docent_recent_tool_calls", "ok", "refund"] == 2
    assert values["docent_recent_tool_calls", "hallucination", "(unknown)"] == 1
    assert values["docent_recent_tool_failure_rate", "look"] == 0.5
    assert values["docent_recent_tool_validation_rate", "look"] == 0.5
    assert values["docent_recent_tool_hallucination_rate", "(unknown)"] == 1
    assert values["docent_recent_role_tool_calls", "ok", "evaluator"] == 3
    rate = values["docent_recent_role_tool_hallucination_rate", "evaluator"]
    assert rate == pytest.approx(1 / 6)
    assert "fly_away" not in client.get("/metrics").content.decode()


def test_a_reply_names_the_tools_that_did_something(turn: Envelope) -> None:
    assert reply(turn)["used_tools"] == used_tools(turn.pk) == ["look", "refund"]


def test_a_trace_has_results_whole_for_staff_and_no_more_than_outcomes_for_others(
    turn: Envelope,
) -> None:
    step = trace(turn, staff=True)["steps"][-1]
    look = step["tool_calls"][1]
    assert (look["arguments"], look["result"]["found"]) == ({"query": "secret"}, "secret")
    kinds = [each["kind"] for each in step["trajectory"]]
    assert set(kinds) <= {"thought", "action", "observation"}
    shown = trace(turn)["steps"][-1]
    assert [each["outcome"] for each in shown["tool_calls"]] == [
        "execution", "ok", "hallucination", "validation", "ok", "ok",
    ]  # fmt: skip
    assert "secret" not in json.dumps(shown["tool_calls"])
    assert "trajectory" not in shown


def test_the_command_shows_what_tools_did(
    turn: Envelope, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("trace", str(turn.pk))
    told = " ".join(capsys.readouterr().out.split())
    assert 'look {"query": "secret"} · ok' in told
    assert "done before" in told


def test_the_admin_shows_calls_figures_and_results(client: Client, turn: Envelope) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    page = client.get("/admin/agents/toolrun/").content.decode()
    assert "Hallucinated" in page
    assert '<table class="listing">' in page
    newest, oldest = ToolRun.objects.latest("pk"), ToolRun.objects.earliest("pk")
    assert page.index(f"toolrun/{newest.pk}/change/") < page.index(f"toolrun/{oldest.pk}/change/")
    run = ToolRun.objects.get(tool="look", outcome="ok")
    assert "secret" in client.get(f"/admin/agents/toolrun/{run.pk}/change/").content.decode()
    timeline = client.get(f"/admin/agents/envelope/{turn.pk}/change/").content.decode()
    assert f"/admin/agents/toolrun/{run.pk}/change/" in timeline


def test_what_tools_did_is_forgotten_with_the_turn(turn: Envelope) -> None:
    turn.delete()
    assert not ToolRun.objects.exists()
