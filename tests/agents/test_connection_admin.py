"""The page that connects a provider: for who may, and without a word of the key."""

import json
import sys
from http import HTTPStatus
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from agents import connection_trial
from agents.steps import events
from assistant.lab.model_server import Response, serving
from tests.assistant.conftest import eventually

PAGE, LISTED = "/admin/models/", "/admin/models/listed/"
KEY = "sk-a-very-secret-key"
MODEL = {"provider": "openai", "address": "", "key": KEY, "model": "gpt-4o-mini"}
# Tells what it was given, as the real process tells what it finds.
PROCESS = """
import json, sys
key = sys.stdin.readline().strip()
told = {"stage": "saved", "text": f"{len(key)} characters and {' '.join(sys.argv[1:])}"}
where = {"provider": "openai", "address": "https://a/v1", "models": []}
print(json.dumps({"stage": "connected"} | where))
print(json.dumps({"stage": "tried", "outcome": "ok", "seconds": 1.0, "said": "<script>white"}))
side = {"mode": "model", "seconds": 1, "citations": {}}
sides = [side | {"text": f"**{name}** <script>"} for name in "ab"]
print(json.dumps({"stage": "answered", "question": "Why?", "answers": sides}))
print(json.dumps(told))
"""


@pytest.fixture
def operator(client: Client, db: None, settings: Settings, tmp_path: Path) -> Client:
    """A browser of somebody who may connect providers, of a checkout without settings."""
    settings.BASE_DIR = tmp_path
    events.connection().delete(connection_trial.KEY)
    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="connect_model"))
    client.force_login(user)
    return client


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that only tells what it was given."""
    monkeypatch.setattr(
        connection_trial,
        "command",
        lambda options: [sys.executable, "-c", PROCESS, *options],
    )


@pytest.mark.usefixtures("process")
def test_what_a_trial_tells_is_shown_and_its_key_never(operator: Client) -> None:
    answer = operator.post(PAGE, MODEL | {"saves": "on", "compares": "on"})
    assert answer.status_code == HTTPStatus.FOUND
    eventually(lambda: bool(connection_trial.told().first(connection_trial.ENDED)))
    page = operator.get(PAGE).content.decode()
    assert f"{len(KEY)} characters and --add=openai --model=gpt-4o-mini" in page
    assert "--save" in page
    assert "ok after 1.0 s: &lt;script&gt;white" in page
    assert "<strong>b</strong> &lt;script&gt;" in page
    assert "openai at https://a/v1" in page
    assert "data-running" not in page
    assert KEY not in page + json.dumps(connection_trial.told().lines)


@pytest.mark.usefixtures("process")
def test_a_second_trial_waits_for_the_first(operator: Client) -> None:
    connection_trial._tell({"stage": "begun", "by": "bob"})
    page = operator.post(PAGE, MODEL).content.decode()
    assert "Another model is being tried" in page
    assert "data-running" in page
    assert KEY not in page


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"key": ""}, "OpenAI answers nobody without a key"),
        ({"model": ""}, "This field is required"),
        ({"address": "nowhere"}, "must be like https://host/v1"),
        ({"provider": "", "address": ""}, "no name for a provider"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_tried(
    operator: Client, changes: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    answer = operator.post(PAGE, MODEL | changes)
    assert said in answer.content.decode()
    assert connection_trial.told().lines == []


def test_its_models_are_listed_or_why_not(operator: Client) -> None:
    models = Response(body=json.dumps({"data": [{"id": "small"}]}))
    with serving(lambda call: models) as server:
        asked = {"provider": "", "address": server.base_url, "key": KEY}
        assert operator.post(LISTED, asked).json() == {"models": ["small"]}
    assert "cannot be reached" in operator.post(LISTED, asked).json()["error"]


def test_it_says_what_waits_for_a_restart_and_where_it_is_written(
    operator: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEN_MODEL", raising=False)
    assert "rules: no model is set" in operator.get(PAGE).content.decode()
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={KEY}\nGEN_MODEL=gpt-4o-mini@openai\n")
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/docent")
    page = operator.get(PAGE).content.decode()
    assert "to have gpt-4o-mini@openai asked" in page
    assert "processes on other machines" in page
    assert str(tmp_path / ".env") in page
    assert KEY not in page


def test_it_is_closed_to_staff_who_may_not_connect(operator: Client) -> None:
    operator.force_login(User.objects.create_user("bob", is_staff=True))
    assert operator.get(PAGE).status_code == HTTPStatus.FORBIDDEN
    assert operator.post(LISTED, MODEL).status_code == HTTPStatus.FORBIDDEN
