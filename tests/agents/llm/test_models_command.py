"""models: what an operator is shown of the models, and told when one does not answer."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import call_command
from pytest_django import Settings

from agents.llm import breaker
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Choice
from agents.llm.speed import Speed, measure, proposal
from agents.models import ModelCall, Price
from agents.names import PROFILES
from knowledge.providers import HOSTED, Provider
from tests.scripted import Call, Response, Scripted, shaped

QUICK = Response(" ".join(map(str, range(100))))


@pytest.fixture(autouse=True)
def two_models(models: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Essence asks one, with a second; the router none, and all others the first."""
    monkeypatch.setenv("COLUMNS", "300")
    before = settings.MODELS
    settings.MODELS = {
        "essence": Choice("fake@scripted", "spare@scripted", max_tokens=50),
        "router": Choice("", "never@scripted"),
        "response": Choice("fake@scripted", max_tokens=70, timeout=60),
    }
    yield
    settings.MODELS = before


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    call_command("models", *options)
    return capsys.readouterr().out


def test_it_shows_who_asks_whom_at_what_price(capsys: pytest.CaptureFixture[str]) -> None:
    Price.objects.create(
        model="fake@scripted", input_per_million=Decimal("0.15"), output_per_million=2
    )
    output = shown(capsys)
    assert "0.15 in, 2 out" in output
    assert "unknown" in output
    assert "spare@scripted" in output
    assert settings.PROVIDERS["scripted"].base_url in output
    assert "never@scripted" not in output.partition("Who is asked")[2]


def test_it_shows_which_provider_is_left_alone_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(breaker.FAILURES):
        breaker.failed("scripted", ModelFailure(Outcome.SERVER_ERROR, "it fails (500)"))
    assert "UTC: it fails (500)" in shown(capsys)


def test_it_shows_which_key_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    known = Provider("openai", HOSTED["openai"])
    settings.MODELS = {"essence": Choice("gpt-5@openai")}
    settings.PROVIDERS["openai"], before = known, settings.PROVIDERS["openai"]
    try:
        assert "OPENAI_API_KEY is not set" in shown(capsys)
        settings.PROVIDERS["openai"] = replace(known, api_key="k")
        assert "OPENAI_API_KEY" not in shown(capsys)
    finally:
        settings.PROVIDERS["openai"] = before


def test_without_a_model_it_says_how_to_set_one() -> None:
    settings.MODELS = {"essence": Choice()}
    out = StringIO()
    call_command("models", stdout=out)
    assert "Set GEN_MODEL" in out.getvalue()


def test_every_model_is_asked_once_and_the_call_is_accounted_for(
    models: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    models.says("trial", shaped(word="white"))
    models.says("trial_long", shaped(word="heron"))
    models.says("trial_speed", QUICK)
    output = shown(capsys, "--ask")
    assert output.count("white") == 2
    calls = [(each.body["model"], each.prompt) for each in models.server.ledger]
    words, names = ("trial", "trial_long"), ("fake", "spare")
    tried = [(name, prompt) for name in names for prompt in words]
    assert calls == [*tried, *((name, "trial_speed") for name in names)]
    assert models.server.ledger[0].body["max_tokens"] == 70
    assert ModelCall.objects.filter(role="trial", outcome="ok").count() == 6


def reading(seconds: float, profile: str) -> Speed:
    """A model that takes so long for an ordinary question in this profile."""
    slow = Speed(1.0, 1e9, 1.0, 1e9)
    return replace(slow, reading=slow.turn_seconds(profile) / seconds)


def test_it_proposes_the_fullest_profile_that_takes_half_of_a_turn() -> None:
    for profile in PROFILES:
        said = proposal(reading(59, profile))
        assert (
            f"MODEL_PROFILE={profile} an ordinary question takes it about 59 s of the 120 s" in said
        )
    assert "MODEL_PROFILE=balanced" in proposal(reading(61, "full"))
    assert "MODEL_PROFILE=answer" in proposal(reading(61, "balanced"))
    assert "an answer alone takes it about 61 s, too slow" in proposal(reading(61, "answer"))


def test_one_that_is_not_there_in_a_turns_time_is_not_measured(
    models: Scripted, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    settings.TURN_DEADLINE_SECONDS = 1
    models.says("trial", shaped(word="white"))
    models.says("trial_long", shaped(word="heron"))
    models.says("trial_speed", Response(hang=True))
    assert "could not be measured: fake@scripted" in shown(capsys, "--ask")


def test_what_it_proposes_is_measured(models: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    models.says("trial", shaped(word="white"))
    models.says("trial_long", shaped(word="heron"))
    models.says("trial_speed", replace(QUICK, seconds=1.2, first_after=1.0))
    speed = measure(Choice("fake@scripted", max_tokens=50))
    assert 1000 < speed.tokens_read < 4000
    assert 50 < speed.tokens_written < 1000
    assert "MODEL_PROFILE=full an ordinary question takes" in shown(capsys, "--ask")


def test_it_says_by_which_profile_roles_ask(
    capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    assert "every role asks GEN_MODEL" in shown(capsys)
    settings.MODEL_PROFILE = "balanced"
    askers = "billing, quality, response, translation and the roles of analysis ask GEN_MODEL"
    assert f"Profile: balanced, {askers}" in " ".join(shown(capsys).split())


def test_one_whose_server_cuts_long_requests_is_an_exit_code_and_a_sentence(
    models: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    def cut(call: Call) -> Response:
        """Reply as one that sees the last 4,000 tokens only."""
        return shaped(word="heron" if call.user[-16_000:].startswith("heron") else "unknown")

    models.says("trial", shaped(word="white"))
    models.says("trial_long", cut)
    models.says("trial_speed", QUICK)
    with pytest.raises(SystemExit) as caught:
        shown(capsys, "--ask")
    assert caught.value.code == 1
    assert "OLLAMA_CONTEXT_LENGTH" in capsys.readouterr().out.replace("\n", " ")


def test_one_that_does_not_answer_is_an_exit_code_and_a_sentence(
    models: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    models.says(
        "trial",
        lambda call: (
            Response(status=404) if call.body["model"] == "spare" else shaped(word="white")
        ),
    )
    models.says("trial_long", shaped(word="heron"))
    models.says("trial_speed", QUICK)
    with pytest.raises(SystemExit) as caught:
        shown(capsys, "--ask")
    assert caught.value.code == 1
    output = capsys.readouterr().out
    assert "model_missing" in output
    assert "check the model's name" in output
    assert "white" in output
