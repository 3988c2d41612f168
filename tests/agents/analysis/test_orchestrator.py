"""The orchestrator: whole turns on its route, from the plan to an answer that is cited."""

import json
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from django.core.management import call_command
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from pydantic import ValidationError
from pytest_django import Settings

from agents.analysis.work_plan import Proposal
from agents.models import Envelope, ToolRun
from agents.names import Route, Status
from agents.tools.tool import TOOLS, ToolOutcome
from agents.trace.trace import judged_requirements, plan_steps, trace
from assistant.lab import scripted_analysis
from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_analysis import CZECH, ENGLISH, Case
from assistant.lab.scripted_tools import asks, want
from conversations.services import longest_wait
from tests.agents.analysis.analysing import analysed, asked, given, learn, play
from tests.agents.turning import turn
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)
ONE = [["extractor"]]


@pytest.mark.parametrize("case", [ENGLISH, CZECH], ids=["English", "Czech"])
def test_a_compliance_check_ends_in_a_checklist_with_evidence(
    analysts: Sensible, case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    learn(case, tmp_path_factory.mktemp("pages"))
    play(analysts, case)
    envelope = analysed(case)
    payload = envelope.payload
    assert envelope.status == Status.COMPLETED, payload.get("response")
    roles = [step.role for step in envelope.steps.exclude(role="manager").order_by("number")]
    expected = ["orchestrator", *chain(*scripted_analysis.STEPS), "orchestrator", "quality"]
    assert roles[-len(expected) :] == expected
    batches = dict(envelope.steps.values_list("role", "batch"))
    for together in scripted_analysis.STEPS:
        assert len({batches[role] for role in together}) == 1
    checklist = given(envelope, "requirement_extractor")
    assert [each["requirement"] for each in checklist["requirements"]] == [
        rule.text for rule in case.rules
    ]
    verdicts = given(envelope, "compliance")["verdicts"]
    assert [each["verdict"] for each in verdicts] == [rule.verdict for rule in case.rules]
    texts = {name: each["text"] for name, each in payload["evidence"].items()}
    shown = [[texts[name] for name in each["evidence"]] for each in verdicts]
    assert [rule.words in "".join(text) for rule, text in zip(case.rules, shown, strict=True)]
    assert [bool(text) for text in shown] == [bool(rule.practice) for rule in case.rules]
    for rule in case.rules:
        assert rule.text in payload["response"]
    markers = {each["marker"] for each in payload["source_references"]}
    cited = payload["citations_used"]
    assert {each["marker"] for each in cited} <= markers
    assert {each["citation_status"] for each in cited} == {"verified"}
    assert {each["title"] for each in cited} == {case.act, case.policy}
    assert payload["language"] == case.language
    # The extractor named a passage that no tool gave.
    assert payload["agent_outputs"]["extractor"]["dropped"] == 1
    assert payload["synthesis_report"]["target"] == case.act
    assert payload["gravest"] == 4
    assert payload["analysis_plan"]["estimate"]["calls"] > 0
    told = trace(envelope)["analysis"]
    assert told["agent_outputs"] == payload["agent_outputs"]
    assert {each.condition for each in plan_steps(envelope)} == {"done"}
    rows = judged_requirements(payload)
    assert [row["verdict"] for row in rows] == [rule.verdict for rule in case.rules]
    assert rows[0]["shown"][0]["title"] == case.policy


def test_page_and_admin_show_the_plan_and_the_checklist(
    analysts: Sensible, admin_client: Client
) -> None:
    envelope = analysed()
    page = admin_client.get(reverse("admin:agents_envelope_change", args=[envelope.pk]))
    shown = page.content.decode()
    for rule in ENGLISH.rules:
        assert rule.text in shown
        assert f'class="status {rule.verdict}"' in shown
    assert "requirement_extractor + classifier" in shown
    assert "Expected before it began" in shown
    # A risk, with its passage; and what the extractor's model said when it called its tools.
    assert "Keep them for ten years." in shown
    assert "I look for what both say." in shown
    values = {"entry": {"plan": plan_steps(envelope), "spans": []}, "turn": envelope}
    assert "compliance + risk_verifier" in render_to_string("conversations/steps.html", values)


def test_the_terminal_shows_plan_estimate_and_trajectory(
    analysts: Sensible, capsys: pytest.CaptureFixture[str]
) -> None:
    play(analysts, ENGLISH, ONE)
    envelope = analysed()
    call_command("trace", str(envelope.pk))
    shown = " ".join(capsys.readouterr().out.split())
    assert "Analysis (compliance, complexity 75): extractor" in shown
    assert "a guess" in shown
    assert "✎ I look for what both say." in shown
    assert "⚒ search" in shown
    assert '→ {"quality"' in shown
    # The next one knows what such steps came to.
    call_command("trace", str(analysed().pk))
    assert "as such steps came to lately" in " ".join(capsys.readouterr().out.split())


def test_an_analysis_has_a_time_of_its_own(analysts: Sensible, settings: Settings) -> None:
    settings.ANALYSIS_DEADLINE_SECONDS = 777
    play(analysts, ENGLISH, ONE)
    envelope = analysed()
    assert (envelope.deadline - envelope.create_ts).total_seconds() == 777
    envelope.deadline = envelope.create_ts
    assert longest_wait(envelope) > 777


def test_a_failed_specialist_is_told_and_the_others_go_on(analysts: Sensible) -> None:
    analysts.says("risk_verifier", Response("There are risks, I think."))
    analysts.says("form", Response("I would rather not."))
    payload = analysed().payload
    assert payload["agent_outputs"]["risk_verifier"]["reason"] == "shape"
    assert "Parts of this analysis could not be done, or not wholly: risks." in payload["response"]
    assert given(Envelope.objects.get(), "compliance")["verdicts"]
    assert payload["citations_used"]


def test_what_has_no_shape_is_brought_into_it_once(analysts: Sensible) -> None:
    gaps = {"summary": "None.", "gaps": []}
    play(analysts, ENGLISH, [["extractor"], ["gap_synthesizer"]])
    analysts.says("gap_synthesizer", Response("I found no gaps at all."))
    analysts.says("form", Response(json.dumps(gaps)))
    assert given(analysed(), "gap_synthesizer") == gaps
    assert asked(analysts).count("form") == 1


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([], "names no specialist"),
        ([["extractor"], ["oracle"]], "no specialist oracle"),
        ([["extractor"], ["extractor"]], "twice"),
        ([["compliance"], ["requirement_extractor"]], "needs requirement_extractor"),
        ([["compliance", "requirement_extractor"]], "needs requirement_extractor"),
    ],
    ids=["empty", "invented", "twice", "too early", "at the same time"],
)
def test_a_plan_that_cannot_be_followed_is_no_plan(steps: list[list[str]], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Proposal.model_validate(scripted_analysis.Analyst(ENGLISH).plan(steps))


def test_such_a_plan_is_mended_once_and_then_the_usual_one_is_followed(
    analysts: Sensible,
) -> None:
    play(analysts, ENGLISH, [["extractor"], ["oracle"]])
    plan = analysed().payload["analysis_plan"]
    assert asked(analysts).count("orchestrator") == 2
    assert plan["origin"] == "default"
    assert "no specialist oracle" in plan["problem"]
    assert plan["steps"][:3] == [["extractor"], ["requirement_extractor"], ["compliance"]]


def test_compliance_without_a_checklist_says_so_and_asks_no_model(analysts: Sensible) -> None:
    analysts.says("requirement_extractor", Response("No."))
    analysts.says("form", Response("No."))
    payload = analysed().payload
    assert payload["agent_outputs"]["compliance"]["reason"] == "checklist"
    assert "compliance" not in asked(analysts)
    assert "verdicts on the requirements" in payload["response"]


def test_what_is_simple_is_answered_from_the_documents(analysts: Sensible) -> None:
    simple = scripted_analysis.Analyst(ENGLISH).plan([]) | {"complexity_score": 10}
    analysts.says("orchestrator", Response(json.dumps(simple)))
    envelope = analysed()
    assert envelope.payload["route"] == Route.DOCUMENTATION
    assert envelope.payload["response"]
    assert asked(analysts) == ["orchestrator"]


@pytest.fixture
def no_models(analysts: Sensible, settings: Settings) -> None:
    settings.MODELS = {
        asker: replace(choice, model="") for asker, choice in settings.MODELS.items()
    }


@pytest.mark.usefixtures("no_models")
def test_without_a_model_duties_are_listed_and_nothing_is_judged() -> None:
    envelope = turn(ENGLISH.question, collections=["en"])
    payload = envelope.payload
    assert payload["analysis_plan"]["origin"] == "rules"
    assert payload["mode"] == "extractive"
    assert envelope.status == Status.COMPLETED
    for rule in ENGLISH.rules:
        assert f"- {rule.text} [C" in payload["response"]
    assert "No language model could judge this." in payload["response"]
    assert not [word for word in ("compliant", "violation") if word in payload["response"]]
    assert {each["citation_status"] for each in payload["citations_used"]} == {"verified"}
    assert payload["synthesis_report"]["obligations"]["obligations"][0]["id"] == "REQ-001"


@pytest.mark.usefixtures("no_models")
def test_without_a_model_what_asks_for_no_duties_is_quoted_and_it_is_said_why() -> None:
    payload = turn("What are the risks of how our data policy handles the deletion of invoices?",
                   collections=["en"]).payload  # fmt: skip
    assert payload["analysis_plan"]["origin"] == "rules"
    assert "No language model could analyse this" in payload["response"]


def test_one_more_round_of_specialists_may_be_asked_for_and_no_second(analysts: Sensible) -> None:
    play(analysts, ENGLISH, ONE)
    more = json.dumps({"more": ["gap_synthesizer", "oracle"], "why": "gaps", "answer": ""})
    usual = scripted_analysis.Analyst(ENGLISH).synthesis
    analysts.says("synthesis", Response(more), usual)
    payload = analysed().payload
    assert set(payload["agent_outputs"]) == {"extractor", "gap_synthesizer"}
    assert payload["extra_rounds"] == 1
    assert asked(analysts).count("synthesis") == 2
    assert "Asking for more is allowed: no" in analysts.server.ledger[-2].user


def test_a_model_that_never_stops_and_tools_that_are_none_come_to_an_end(
    analysts: Sensible,
) -> None:
    play(analysts, ENGLISH, ONE)
    usual = scripted_analysis.Analyst(ENGLISH).specialist("extractor")

    def endless(call: Call) -> Response | dict[str, Any]:
        number = scripted_analysis.rounds(call)
        if "No more tools can be called" in call.user:
            return usual(call)
        query = [r.text for r in ENGLISH.rules][number % 3]
        return asks(
            want("search", 1, query=query, limit=1 + number, document=""),
            want("read_minds", 2, query=query),
        )

    analysts.says("extractor", endless)
    envelope = analysed()
    output = envelope.payload["agent_outputs"]["extractor"]
    assert output["stopped"]
    assert output["rounds"] <= 10
    runs = ToolRun.objects.filter(envelope=envelope, tool="read_minds")
    assert {run.outcome for run in runs} == {ToolOutcome.HALLUCINATION}
    assert envelope.payload["citations_used"]


def test_money_that_is_spent_ends_the_plan_with_what_is_known(
    analysts: Sensible, settings: Settings
) -> None:
    settings.ANALYSIS_TOKENS = 1
    payload = analysed().payload
    assert payload["plan_step"] == 1
    assert payload["shortcomings"][0]["reason"] == "budget"
    assert "ANALYSIS_TOKENS" in payload["shortcomings"][0]["detail"]
    assert payload["response"]


def test_a_result_of_200_kb_is_shortened_for_the_model_and_kept_whole(
    analysts: Sensible, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(analysts, ENGLISH, ONE)
    long = replace(TOOLS["search"], function=lambda *_: {"hits": "x" * 200_000, "passages": []})
    monkeypatch.setitem(TOOLS, "search", long)
    envelope = analysed()
    run = ToolRun.objects.filter(envelope=envelope, tool="search").first()
    assert run
    assert run.result
    assert len(run.result["hits"]) == 200_000
    shown = [
        str(message["content"])
        for call in analysts.server.ledger
        if call.prompt == "extractor"
        for message in call.body["messages"]
        if message["role"] == "tool"
    ]
    assert shown
    assert max(map(len, shown)) < 2000
