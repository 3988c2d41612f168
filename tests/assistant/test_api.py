"""Errors of the API: one shape, nothing of ours in it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from agents.models import Fault
from conversations import api


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(User.objects.create(username="ann", is_staff=True))
    return client


def test_a_bug_gives_the_user_a_sentence_and_the_operator_the_rest(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(api, "owned_turn", bug)
    answer = staff.get("/api/turns/00000000-0000-4000-8000-000000000000/")
    body = answer.json()
    fault = Fault.objects.get()
    assert answer.status_code == 500
    assert body["error_id"] == fault.code
    assert fault.code in body["detail"]
    assert "secret detail" not in answer.content.decode()
    assert "secret detail" in fault.details


def test_what_does_not_exist_is_not_found(staff: Client) -> None:
    answer = staff.get("/api/turns/00000000-0000-4000-8000-000000000000/")
    assert answer.status_code == 404
    assert set(answer.json()) == {"code", "detail"}


def test_a_wrong_method_is_refused(staff: Client) -> None:
    answer = staff.get("/api/chat/")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


@pytest.mark.django_db
def test_the_migrations_are_complete() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
