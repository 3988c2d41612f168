"""The orchestrator: whole turns on its route, from the plan to an answer that is cited."""

import json
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from agents.models import Envelope, ToolRun
from agents.names import ANALYSTS, Role, Route, Status
from agents.tools.tool import ToolOutcome
from assistant.lab import scripted_analysis
from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_analysis import CZECH, ENGLISH, Case
from assistant.lab.scripted_tools import asks, want
from conversations.services import longest_wait
from knowledge import ingestion
from tests.agents.turning import turn
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)
ROUTES = ["documentation", "analysis"]
ONE = [["extractor"]]


@pytest.fixture
def analysts(sensible: Sensible, settings: Settings, tmp_path: Path) -> Sensible:
    """Models on the open route, and the documents of both cases in a collection each."""
    settings.ROUTES = ROUTES
    choice = settings.MODELS[Role.RESPONSE]
    settings.MODELS = settings.MODELS | {
        role.value: replace(choice, timeout=5.0, max_tokens=4000) for role in ANALYSTS
    }
    learn(ENGLISH, tmp_path)
    play(sensible, ENGLISH)
    return sensible


def learn(case: Case, folder: Path) -> None:
    for name, text in case.pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    ingestion.ingest(ingestion.find([folder]), collection=case.language)


def play(models: Sensible, case: Case, steps: list[list[str]] | None = None) -> None:
    for prompt, reply in scripted_analysis.replies(case, steps).items():
        models.says(prompt, reply)


def analysed(case: Case = ENGLISH) -> Envelope:
    return turn(case.question, collections=[case.language])


def asked(models: Sensible) -> list[str]:
    """The prompts of the route that were sent, in order."""
    names = {*map(str, ANALYSTS), "synthesis", "form"}
    return [call.prompt for call in models.server.ledger if call.prompt in names]


def given(envelope: Envelope, role: str) -> dict[str, Any]:
    result: dict[str, Any] = envelope.payload["agent_outputs"][role]["result"]
    return result


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


def test_an_analysis_has_a_time_of_its_own(analysts: Sensible, settings: Settings) -> None:
    settings.ANALYSIS_DEADLINE_SECONDS = 777
    play(analysts, ENGLISH, ONE)
    envelope = analysed()
    assert (envelope.deadline - envelope.create_ts).total_seconds() == 777
    envelope.deadline = envelope.create_ts
    assert longest_wait(envelope) > 777


def test_specialists_of_a_step_wait_for_no_other_of_it(analysts: Sensible) -> None:
    envelope = analysed()
    steps = list(envelope.steps.exclude(role="manager").order_by("number"))
    batches = {step.role: step.batch for step in steps}
    assert batches["requirement_extractor"] == batches["classifier"]
    assert batches["compliance"] == batches["risk_verifier"]
    together = {step.role: step.number for step in steps}
    assert together["classifier"] - together["requirement_extractor"] == 1


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
        ([["extractor"], ["oracle"]], "no specialist oracle"),
        ([["compliance"], ["requirement_extractor"]], "needs requirement_extractor"),
        ([["compliance", "requirement_extractor"]], "needs requirement_extractor"),
    ],
    ids=["invented", "too early", "at the same time"],
)
def test_a_plan_that_cannot_be_followed_is_mended_once_and_then_the_usual_one(
    analysts: Sensible, steps: list[list[str]], problem: str
) -> None:
    play(analysts, ENGLISH, steps)
    plan = analysed().payload["analysis_plan"]
    assert asked(analysts).count("orchestrator") == 1 or problem in plan["problem"]
    assert plan["origin"] == "default"
    assert problem in plan["problem"]
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


def test_without_a_model_the_documents_are_quoted_and_it_is_said_why(
    analysts: Sensible, settings: Settings
) -> None:
    settings.MODELS = {
        asker: replace(choice, model="") for asker, choice in settings.MODELS.items()
    }
    payload = turn("Check whether our data policy complies with the archive act on invoices.",
                   collections=["en"]).payload  # fmt: skip
    assert payload["analysis_plan"]["origin"] == "rules"
    assert "No language model could analyse this" in payload["response"]
    assert "compliant" not in payload["response"]


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
