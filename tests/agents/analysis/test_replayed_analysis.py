"""An analysis is run again from a specialist, with another model, and costs that alone."""

import json
from typing import Any

import pytest
from django.core.management import call_command

from agents.models import ModelCall, ToolRun
from agents.trace.replay import Changes, Replay
from assistant.lab import scripted_analysis
from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_analysis import ENGLISH
from assistant.lab.scripted_tools import asks, want
from tests.agents.analysis.analysing import analysed, play
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("role", ["extractor", "compliance", "risk_verifier"])
def test_a_replay_from_a_specialist_asks_its_other_model_and_nobody_before_it(
    analysts: Sensible, role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    play(
        analysts,
        ENGLISH,
        [["extractor"], ["requirement_extractor"], ["compliance", "risk_verifier"]],
    )
    envelope = analysed()
    step = envelope.steps.get(role=role)
    analysts.server.ledger.clear()
    with pytest.raises(SystemExit) as end:
        call_command(
            "replay",
            str(envelope.pk),
            since=step.number,
            model=[f"{role}=other@scripted"],
            json=True,
        )
    assert end.value.code == 0
    assert {call.prompt for call in analysts.server.ledger} == {role}
    assert {call.body["model"] for call in analysts.server.ledger} == {"other"}
    sides = json.loads(capsys.readouterr().out)
    assert sides["answer"]["now"] == envelope.payload["response"]
    assert sides["usage"]["asked"] == len(analysts.server.ledger)
    envelope.refresh_from_db()
    assert envelope.status == "completed"


def test_tools_of_a_replay_know_what_they_gave_in_it(analysts: Sensible) -> None:
    play(analysts, ENGLISH, [["extractor"]])
    envelope = analysed()
    usual = scripted_analysis.Analyst(ENGLISH).specialist("extractor")
    told: list[str] = []

    def other(call: Call) -> Response | dict[str, Any]:
        number = scripted_analysis.rounds(call)
        if not number:
            return asks(want("search", 1, query="Who keeps a log?", limit=1, document=""))
        found = next(iter(scripted_analysis.known(call).values()))
        if number == 1:
            return asks(want("expand_context", 2, passage=found, distance=1))
        told.append(str(call.body["messages"][-1]["content"]))
        return usual(call)

    analysts.says("extractor", other)
    runs, calls = ToolRun.objects.count(), ModelCall.objects.filter(envelope=envelope).count()
    # What was found then is no help: its rows are another turn's.
    ToolRun.objects.all().delete()
    Replay(envelope, Changes({"extractor": "other@scripted"})).run()
    assert runs
    assert calls
    assert told
    assert "No tool gave" not in told[0]
    assert not ToolRun.objects.exists()
