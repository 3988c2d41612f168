"""A replay tells what would be different, and touches nothing of the turn."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.forms.models import model_to_dict
from pytest_django import Settings

from agents.attributes import Persona
from agents.intake import guardrails
from agents.llm.requests import Choice
from agents.models import Envelope, ModelCall, Step
from agents.names import MODEL_ASKERS
from agents.steps import events
from agents.trace.replay import Changes, Replay, comparison
from agents.trace.usage import usage_of_turn
from assistant.lab.model_server import Response
from knowledge import ingestion
from knowledge.providers import Provider
from prompts.texts import FOLDER
from tests.agents.turning import turn
from tests.e2e.conftest import PAGES
from tests.sensible import Sensible, thinking

pytestmark = pytest.mark.django_db(transaction=True)

# Two things are asked for, so essence and evaluator are asked as well.
QUESTION = "How do I descale and rinse the heater?"


@pytest.fixture
def models(settings: Settings) -> Iterator[Sensible]:
    """Every role asks a sensible model; the pages of the Teapot are known."""
    ingestion.ingest(ingestion.find([PAGES]), collection="teapot")
    events.connection().flushdb()
    with thinking() as server:
        settings.PROVIDERS = settings.PROVIDERS | {
            "scripted": Provider("scripted", server.server.base_url)
        }
        settings.MODELS = {
            asker: replace(settings.MODELS[asker], model="fake@scripted", timeout=5.0)
            for asker in MODEL_ASKERS
        }
        settings.CACHE_MODEL_SECONDS = settings.CACHE_TRANSLATION_SECONDS = 0
        settings.CACHE_QUALITY_SECONDS = 0
        yield server


@pytest.fixture
def envelope(models: Sensible) -> Envelope:
    """A turn that has ended; the server has forgotten it."""
    envelope = turn(QUESTION, collections=["teapot"])
    models.server.ledger.clear()
    return envelope


def replayed(envelope: Envelope, *, since: int = 1, **changes: dict[str, str]) -> dict[str, Any]:
    replay = Replay(envelope, Changes(**changes), since)
    replay.run()
    return comparison(replay)


def reworded(prompt: str) -> str:
    """The file of a prompt with a sentence more."""
    written = (FOLDER / f"{prompt}.md").read_text(encoding="utf-8")
    return written.replace("\n<!-- user -->\n", "\nBe brief.\n\n<!-- user -->\n")


def test_a_turn_replays_the_same_from_its_journal(models: Sensible, envelope: Envelope) -> None:
    sides = replayed(envelope)
    assert [
        (step["role"], step["then"], step["now"]) for step in sides["steps"] if step["then"]
    ] == []
    assert sides["same"] is True
    assert sides["route"]["then"] == sides["route"]["now"]
    assert (sides["usage"]["asked"], sides["usage"]["cost"]) == (0, 0)
    assert sides["usage"]["found"] == usage_of_turn(envelope.pk)["model_calls"] > 0
    assert models.server.ledger == []


def test_it_needs_no_model_that_is_still_there(
    models: Sensible, envelope: Envelope, settings: Settings
) -> None:
    settings.MODELS = {asker: Choice() for asker in MODEL_ASKERS}
    settings.PROVIDERS = {}
    assert replayed(envelope)["same"] is True
    assert models.server.ledger == []


def test_a_turn_without_models_replays_the_same_although_there_is_one_now(
    models: Sensible, settings: Settings
) -> None:
    with_models, settings.MODELS = settings.MODELS, {asker: Choice() for asker in MODEL_ASKERS}
    extractive = turn(QUESTION, collections=["teapot"])
    settings.MODELS = with_models
    assert replayed(extractive)["same"] is True
    assert models.server.ledger == []


def test_a_failure_of_then_fails_again_and_is_not_asked(models: Sensible) -> None:
    models.says("essence", Response("{not json"))
    degraded = turn(QUESTION, collections=["teapot"])
    assert degraded.steps.get(role="essence").mode == "extractive"
    models.reset()
    sides = replayed(degraded)
    assert sides["same"] is True
    assert models.server.ledger == []


def test_a_call_that_was_lost_then_is_no_part_of_the_replay(
    models: Sensible, envelope: Envelope
) -> None:
    for number, call in enumerate(ModelCall.objects.filter(envelope=envelope)):
        call.pk, call.number, call.outcome = None, 100 + number, "lost"
        call.save(force_insert=True)
    assert replayed(envelope)["same"] is True
    assert models.server.ledger == []


def test_another_prompt_is_asked_and_costs_nothing_the_second_time(
    models: Sensible, envelope: Envelope
) -> None:
    models.says("essence", {"canonical_question": "How is the heater of the Teapot descaled?"})
    sides = replayed(envelope, prompts={"essence": reworded("essence")})
    essence = next(step for step in sides["steps"] if step["role"] == "essence")
    assert sides["same"] is False
    assert essence["now"]["canonical_question"] == "How is the heater of the Teapot descaled?"
    assert essence["then"]["canonical_question"] != essence["now"]["canonical_question"]
    assert [call["how"] for call in essence["calls"]] == ["asked"]
    assert sides["usage"]["asked"] == len(models.server.ledger) > 0
    models.server.ledger.clear()
    second = replayed(envelope, prompts={"essence": reworded("essence")})
    assert models.server.ledger == []
    assert second["usage"]["asked"] == 0
    assert second["answer"] == sides["answer"]


def test_another_model_is_asked_by_its_role_alone(models: Sensible, envelope: Envelope) -> None:
    sides = replayed(envelope, models={"essence": "other@scripted"})
    assert [call.body["model"] for call in models.server.ledger] == ["other"]
    # It said the same, so that everybody after it was asked the same.
    assert sides["same"] is True
    assert sides["usage"]["asked"] == 1


def test_only_the_steps_from_the_given_one_on_work(models: Sensible, envelope: Envelope) -> None:
    essence = envelope.steps.get(role="essence").number
    sides = replayed(envelope, since=essence + 1, prompts={"essence": reworded("essence")})
    assert {step["how"] for step in sides["steps"][:essence]} == {"stored"}
    assert models.server.ledger == []
    assert sides["notes"] == ["No call of this turn used the prompt essence."]


def test_a_changed_role_may_take_another_way(
    models: Sensible, envelope: Envelope, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The question is one about which the model is believed.
    monkeypatch.setattr(guardrails, "PLAINLY_HARMLESS", -100.0)
    models.says(
        "guardrails", {"passed": False, "guardrails_passed": False, "category": "harmful_content"}
    )
    sides = replayed(envelope, prompts={"guardrails": reworded("guardrails")})
    assert "clarification" in sides["route"]["now"]
    assert "clarification" not in sides["route"]["then"]
    assert sides["status"]["now"] == "completed"


def test_a_turn_is_replayed_with_its_assistant_as_it_stood(
    models: Sensible, settings: Settings
) -> None:
    shop = Persona(
        name="shop",
        domain_name="Teapot",
        tone="Calm.",
        models={"quality": "", "essence": "other@scripted"},
    )
    envelope = turn(QUESTION, collections=["teapot"], assistant=shop.model_dump(mode="json"))
    asked = {call.prompt: call.body["model"] for call in models.server.ledger}
    assert (asked["response"], asked["essence"]) == ("fake", "other")
    assert "quality" not in asked
    models.server.ledger.clear()
    settings.DOMAIN_NAME, settings.GUARDRAILS_STRICTNESS = "kettles", "high"
    assert replayed(envelope)["same"] is True
    assert models.server.ledger == []


def rows(envelope: Envelope) -> str:
    """Everything that is stored of a turn, but not what replays asked."""
    calls = ModelCall.objects.exclude(subject__startswith="replay/").order_by("pk")
    stored = [*Envelope.objects.all(), *Step.objects.order_by("pk"), *calls]
    return json.dumps([model_to_dict(row) for row in stored], default=str)


def test_nothing_of_the_turn_is_touched(models: Sensible, envelope: Envelope) -> None:
    before, streams = rows(envelope), set(events.connection().scan_iter("turn:*"))
    lengths = [events.connection().xlen(name) for name in sorted(streams)]
    models.says("essence", Response("{not json"))
    replayed(envelope, prompts={"essence": reworded("essence")})
    assert rows(envelope) == before
    assert set(events.connection().scan_iter("turn:*")) == streams
    assert [events.connection().xlen(name) for name in sorted(streams)] == lengths


def test_what_a_replay_asked_goes_with_the_turn(models: Sensible, envelope: Envelope) -> None:
    replayed(envelope, models={"essence": "other@scripted"})
    assert ModelCall.objects.filter(subject__startswith="replay/", owner="replay").exists()
    envelope.delete()
    assert not ModelCall.objects.filter(subject__startswith="replay/").exists()


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--model=lang=fake@scripted", "'lang' asks no model"),
        ("--model=essence=fake@nowhere", "write essence=model@provider"),
        ("--prompt=nobody=x.md", "there is no prompt 'nobody'"),
        ("--prompt=essence=/nowhere.md", "No such file"),
    ],
)
def test_changes_that_cannot_be_made_are_refused(option: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        call_command("replay", str(uuid4()), option)


def test_a_file_with_other_variables_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "evaluator.md"
    file.write_text(
        "---\nvariables: {question: data}\nsamples: {question: a}\n---\n# evaluator\n\n"
        "Judge.\n\n<!-- user -->\n{{ question }}\n"
    )
    with pytest.raises(CommandError, match=r"differ in the variables: .*passages"):
        call_command("replay", str(uuid4()), "--prompt", f"evaluator={file}")


def test_the_command_says_by_its_exit_code_whether_anything_differs(
    models: Sensible, envelope: Envelope, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="the turn has"):
        call_command("replay", str(envelope.pk), "--from=99")
    with pytest.raises(SystemExit, match="0"):
        call_command("replay", str(envelope.pk))
    assert "The same." in capsys.readouterr().out
    file = tmp_path / "essence.md"
    file.write_text(reworded("essence"))
    models.says("essence", {"canonical_question": "How is the heater of the Teapot descaled?"})
    with pytest.raises(SystemExit, match="2"):
        call_command("replay", str(envelope.pk), "--prompt", f"essence={file}", "--json")
    assert json.loads(capsys.readouterr().out)["same"] is False
