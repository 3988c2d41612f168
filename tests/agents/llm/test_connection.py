"""A provider is looked at before it is set, and set without a word of its key."""

import json
import stat
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from pytest_django import Settings

from agents.llm import connection
from agents.llm.connection import Unconnected
from agents.llm.requests import Choice
from agents.models import ModelCall, Price
from agents.names import MODEL_ASKERS
from agents.trace import comparison
from assistant.lab.model_server import Call, Response, serving
from knowledge import ingestion
from knowledge.collections import OWN_DOCUMENTATION
from knowledge.models import GoldenQuestion
from knowledge.providers import Provider
from tests import factories
from tests.e2e.conftest import PAGES
from tests.scripted import Scripted, shaped

KEY = "sk-a-very-secret-key"
LIST = Response(body=json.dumps({"data": [{"id": "fake"}, {"id": "models/large"}]}))
QUESTION = "How do I descale the heater?"
ENV = "# Ours.\nMAX_TURNS=7\n#GEN_MODEL=\nexport GEN_MODEL=old@openai\n"


@pytest.fixture
def env_file(
    tmp_path: Path, settings: Settings, models: Scripted, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The `.env` of a checkout in which every role works by rules, beside a server to ask."""
    monkeypatch.setenv("COLUMNS", "300")
    settings.BASE_DIR = tmp_path
    settings.MODELS = {asker: Choice() for asker in MODEL_ASKERS}
    models.says("/v1/models", LIST)
    models.says("trial", shaped(word="white"))
    models.says("trial_long", shaped(word="heron"))
    models.says("trial_speed", Response(" ".join(map(str, range(100)))))
    file = tmp_path / ".env"
    file.write_text(ENV)
    file.chmod(0o644)
    return file


def add(models: Scripted, *options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect the scripted server with a key from standard input."""
    monkeypatch.setattr("sys.stdin", StringIO(f"{KEY}\n"))
    where = ("--add", "acme", "--address", models.server.base_url, "--model", "fake")
    call_command("models", *where, "--key-from", "-", *options)


def test_it_is_set_where_settings_live_and_its_key_is_never_shown(
    env_file: Path,
    models: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add(models, "--no-compare", "--save", monkeypatch=monkeypatch)
    assert env_file.read_text() == (
        "# Ours.\nMAX_TURNS=7\n#GEN_MODEL=\nGEN_MODEL=fake@acme\n"
        f"ACME_API_KEY={KEY}\nACME_BASE_URL={models.server.base_url}\nMODEL_PROFILE=full\n"
    )
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    shown = "".join(capsys.readouterr())
    assert "fake@acme is set in" in shown.replace("\n", "")
    assert KEY not in shown
    assert models.server.ledger[-1].headers["authorization"] == f"Bearer {KEY}"


def test_where_it_cannot_be_written_the_lines_to_set_are_shown(
    env_file: Path,
    models: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    env_file.unlink()
    env_file.mkdir()
    add(models, "--no-compare", "--save", monkeypatch=monkeypatch)
    shown = "".join(capsys.readouterr()).replace("\n", " ")
    assert "cannot be written" in shown
    assert "ACME_API_KEY=…" in shown
    assert "GEN_MODEL=fake@acme" in shown
    assert KEY not in shown


def test_what_the_environment_sets_otherwise_wins_over_the_file(
    env_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEN_MODEL", "other@openai")
    monkeypatch.setenv("MODEL_PROFILE", "answer")
    assert connection.overruled({"GEN_MODEL": "a@b", "MODEL_PROFILE": "answer"}) == ["GEN_MODEL"]
    monkeypatch.setenv("GEN_MODEL", "old@openai")
    assert connection.overruled({"GEN_MODEL": "a@b"}) == []


def test_the_same_question_is_answered_before_and_after_and_what_a_thousand_cost_is_measured(
    env_file: Path,
    models: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ingestion.ingest(ingestion.find([PAGES]), collection="teapot")
    Price.objects.create(model="fake@acme", input_per_million=1, output_per_million=2)
    models.says("response", Response("Fill the heater with vinegar. [C1]"))
    add(
        models, "--profile", "answer", "--question", QUESTION, "--json", "--no-save",
        monkeypatch=monkeypatch,
    )  # fmt: skip
    told = {line["stage"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    before, after = told["answered"]["answers"]
    assert (before["mode"], before["calls"], before["cost"]) == ("extractive", 0, 0)
    assert sum(before["citations"].values()) > 0
    assert after["calls"] > 0
    spent = ModelCall.objects.filter(subject__startswith="comparison/")
    assert after["input_tokens"] == sum(each.input_tokens or 0 for each in spent)
    cost = (after["input_tokens"] + 2 * after["output_tokens"]) / 1_000_000
    assert told["compared"]["sums"][1]["usd_per_1000"] == pytest.approx(1000 * cost, rel=0.01)
    assert told["left"]["lines"][-1] == "GEN_MODEL=fake@acme"
    assert env_file.read_text() == ENV


def test_one_that_does_not_answer_is_not_set(
    env_file: Path,
    models: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    models.says("trial", Response(status=404))
    with pytest.raises(SystemExit) as caught:
        add(models, "--save", monkeypatch=monkeypatch)
    assert caught.value.code == 1
    assert "check the model's name" in capsys.readouterr().out.replace("\n", " ")
    assert env_file.read_text() == ENV


def test_who_is_asked_may_mend_a_wrong_key(
    env_file: Path,
    models: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def right_key_only(call: Call) -> Response:
        return LIST if call.headers["authorization"] == f"Bearer {KEY}" else Response(status=401)

    models.says("/v1/models", right_key_only)
    keys = iter(["sk-mistyped", KEY])
    address = models.server.base_url
    answers = iter(["10", address, "acme", "10", address, "acme", "large", "balanced", "no"])
    monkeypatch.setattr("agents.management.guide.getpass", lambda prompt: next(keys))
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    call_command("models", "--add", "--no-compare")
    shown = capsys.readouterr().out.replace("\n", " ")
    assert "acme refuses the key (401)" in shown
    assert "Nothing was set" in shown
    assert {"MODEL_PROFILE=balanced", "GEN_MODEL=large@acme"} <= {*shown.split()}
    assert env_file.read_text() == ENV


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (Response(status=403), "refuses the key (403)"),
        (Response(status=301, headers={"Location": "https://else.example/v1"}), "else.example"),
    ],
)
def test_a_provider_that_cannot_be_used_is_a_sentence(response: Response, said: str) -> None:
    with serving(lambda call: response) as server, pytest.raises(Unconnected, match=r".") as caught:
        connection.listed_models(Provider("acme", server.base_url, KEY))
    assert said in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "response", [Response(status=404), Response(body="<html>"), Response(body="{}")]
)
def test_one_that_keeps_no_list_is_asked_all_the_same(response: Response) -> None:
    with serving(lambda call: response) as server:
        assert connection.listed_models(Provider("acme", server.base_url)) == []


@pytest.mark.parametrize(
    ("name", "address", "said"),
    [
        ("openai", "", "without a key"),
        ("acme", "", "give the address"),
        ("a b", "http://127.0.0.1:1/v1", "no name"),
        ("acme", "127.0.0.1:1/v1", "must be like https://host/v1"),
        ("", "", "no name"),
    ],
)
def test_what_cannot_be_connected_says_what_is_missing(
    name: str, address: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(Unconnected, match=said):
        connection.connected(name, address)


def test_a_key_that_is_set_goes_to_no_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    monkeypatch.setenv("ACME_BASE_URL", "https://acme.example/v1")
    assert connection.connected("acme").api_key == KEY
    assert connection.connected("acme", "https://acme.example/v1/").api_key == KEY
    assert connection.connected("acme", "https://elsewhere.example/v1").api_key == ""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert connection.connected("openai").api_key == KEY
    assert connection.connected("openai", "https://elsewhere.example/v1").api_key == ""


def test_nobody_listening_at_an_address_is_a_sentence() -> None:
    with serving(lambda call: LIST) as server:
        gone = server.base_url
    with pytest.raises(Unconnected, match="cannot be reached at"):
        connection.listed_models(Provider("acme", gone))


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://models.example.org/v1", "example"),
        ("http://10.0.0.5:8000/v1", "local"),
        ("http://gpu-1:8000/v1", "gpu_1"),
    ],
)
def test_a_server_without_a_name_gets_that_of_its_host(address: str, name: str) -> None:
    assert connection.connected("", address).name == name


@override_settings(OWN_MODEL_ASKERS=frozenset({"router"}))
def test_who_has_a_model_of_its_own_keeps_it(settings: Settings) -> None:
    settings.MODELS = {asker: Choice("own@a") for asker in MODEL_ASKERS}
    found = connection.choices_with("new@b", "answer")
    assert (found["router"].model, found["response"].model, found["quality"].model) == (
        "own@a",
        "new@b",
        "",
    )


def test_golden_questions_are_asked_first(db: None) -> None:
    larger = factories.collection("larger", documents=9)
    small = factories.collection("small")
    factories.collection(OWN_DOCUMENTATION, documents=12)
    assert comparison.collection_to_ask() == larger
    GoldenQuestion.objects.create(collection=small, question="Is it?", sources=["0.md"])
    GoldenQuestion.objects.create(collection=small, question="Is there none?", sources=[])
    assert comparison.collection_to_ask() == small
    assert comparison.questions(small) == [
        "Is it?",
        "What do the documents say about “Holidays 0”?",
    ]


def test_without_anybody_to_ask_what_is_missing_is_named(
    env_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(CommandError, match="name the provider"):
        call_command("models", "--add")
