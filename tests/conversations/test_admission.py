"""What Docent refuses while it has enough to do."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils.timezone import now

from agents import envelopes
from agents.models import Envelope
from agents.names import Status
from conversations.errors import TooManyTurns
from conversations.models import Conversation, Message
from conversations.services import Asker, ask

pytestmark = pytest.mark.usefixtures("listening")


@pytest.fixture
def few(settings: LazySettings) -> None:
    """Two turns of one user at a time, three altogether."""
    settings.MAX_TURNS_PER_KEY, settings.MAX_TURNS = 2, 3


def begin(owner: User | None) -> Envelope:
    return ask("Do unused days end?", Asker(owner))


def person(name: str) -> User:
    return User.objects.create_user(name)


@pytest.mark.usefixtures("few")
def test_more_turns_of_one_user_than_allowed_are_refused_and_leave_nothing(db: None) -> None:
    ann = person("ann")
    for _ in range(2):
        begin(ann)
    with pytest.raises(TooManyTurns, match="No more than 2 of your questions"):
        begin(ann)
    assert Conversation.objects.count() == Message.objects.count() == Envelope.objects.count() == 2


@pytest.mark.usefixtures("few")
def test_a_user_at_the_limit_does_not_keep_another_from_asking(db: None) -> None:
    ann, bob = person("ann"), person("bob")
    for owner in (ann, ann, bob):
        begin(owner)
    assert Envelope.objects.count() == 3


@pytest.mark.usefixtures("few")
def test_there_is_a_limit_for_all_users_together(db: None) -> None:
    for name in ("ann", "bob", "cid"):
        begin(person(name))
    with pytest.raises(TooManyTurns, match="No more than 3 questions"):
        begin(person("dee"))


@pytest.mark.usefixtures("few")
def test_who_asks_without_a_login_is_counted_as_one_user(db: None) -> None:
    for _ in range(2):
        begin(None)
    with pytest.raises(TooManyTurns):
        begin(None)


@pytest.mark.usefixtures("few")
def test_a_turn_that_ended_makes_room(db: None) -> None:
    first, _ = begin(None), begin(None)
    envelopes.cancel(first.pk)
    assert begin(None).pk != first.pk


@pytest.mark.usefixtures("few")
def test_a_turn_past_its_deadline_makes_room_even_if_nobody_ended_it(db: None) -> None:
    begin(None), begin(None)
    Envelope.objects.update(deadline=now() - timedelta(seconds=1))
    assert begin(None).status == Status.RUNNING


@pytest.mark.usefixtures("few")
def test_of_many_questions_at_the_same_moment_no_more_are_taken_than_allowed(
    transactional_db: None,
) -> None:
    ann = person("ann")

    def attempt(_: int) -> bool:
        try:
            begin(ann)
        except TooManyTurns:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(attempt, range(16)))
    assert taken.count(True) == Envelope.objects.count() == 2


@pytest.mark.usefixtures("few")
def test_the_api_says_429_and_when_to_try_again(client: Client, db: None) -> None:
    ann = person("ann")
    client.force_login(ann)
    begin(ann), begin(ann)
    answer = client.post(
        "/api/chat/", {"message": "And now?", "wait": False}, content_type="application/json"
    )
    assert answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert answer["Retry-After"] == str(TooManyTurns.retry_seconds)
    assert answer.json() == {
        "code": "too_many_turns",
        "detail": "No more than 2 of your questions are answered at a time. "
        "Try again in 5 seconds.",
    }


@pytest.mark.usefixtures("few")
def test_the_start_page_says_so_and_keeps_the_question(client: Client, db: None) -> None:
    for _ in range(2):
        assert from_address(client, "192.0.2.1").status_code == HTTPStatus.ACCEPTED
    answer = client.post("/", {"text": "Do unused days end?"}, REMOTE_ADDR="192.0.2.1")
    assert answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert answer["Retry-After"] == str(TooManyTurns.retry_seconds)
    page = answer.content.decode()
    assert "Too many questions are being answered at the moment." in page
    assert "Do unused days end?</textarea>" in page


def from_address(client: Client, address: str) -> Any:
    """Ask on the chat page as its script does, in a browser that asks for the first time."""
    client.cookies.clear()
    question = {"text": "Do unused days end?"}
    accept = {"Accept": "application/json"}
    return client.post("/", question, headers=accept, REMOTE_ADDR=address)


@pytest.mark.usefixtures("few")
def test_a_visitor_who_asks_much_does_not_keep_one_from_another_address_from_asking(
    client: Client, db: None, settings: LazySettings
) -> None:
    settings.MAX_TURNS = 9
    asked = ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")
    statuses = [from_address(client, address).status_code for address in asked]
    statuses.append(from_address(client, "2001:db8::3").status_code)
    assert statuses == [202, 202, 429, 202, 202, 202, 429]
    keys = Envelope.objects.values_list("memory__key", flat=True)
    assert len({*keys}) == 3
    assert not any("192.0.2" in key for key in keys)


@pytest.mark.usefixtures("few")
def test_the_command_says_so_in_one_line(db: None) -> None:
    begin(None), begin(None)
    with pytest.raises(CommandError, match="No more than 2 of your questions"):
        call_command("chat", question="And now?", session=str(uuid4()))
