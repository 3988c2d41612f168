"""Who is forgotten leaves no word behind; what was paid stays counted."""

import json
from http import HTTPStatus
from io import StringIO
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils.timezone import now

from agents.llm import journal
from agents.llm.cost import check_budget
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply, Usage
from agents.models import ModelCall, ToolRun
from agents.names import Status
from agents.steps import events
from agents.trace.usage import figures
from conversations.erasure import forget, forget_user
from conversations.feedback import Feedback, Rating
from conversations.models import Assistant, Conversation, Handover, Notification
from tests import factories
from tests.residue import places

pytestmark = pytest.mark.django_db(transaction=True)

WORD, USER, OTHER = "xylophone7", "zebra7", "walrus7"


def found(word: str) -> set[str]:
    """Where a word stands."""
    with connection.cursor() as cursor:
        return places(cursor, events.connection(), word)


def tables(places: set[str]) -> set[str]:
    """Those that are no keys of Redis."""
    return {place for place in places if ":" not in place}


def talked(owner: User | None, user_id: str, word: str) -> Conversation:
    """A conversation of a user in which every kind of row holds a word."""
    talk = factories.conversation(f"s-{uuid4()}", owner=owner)
    talk.user_id, talk.summary, talk.topic = user_id, word, word
    talk.facts = [word]
    talk.save()
    turn = factories.turn(
        talk, f"Where is my {word}?", response=word, citations_used=[factories.CITATION]
    )
    turn.steps.update(output={"canonical_question": word}, error=word, degraded=word)
    factories.model_call(
        turn,
        owner=f"user:{owner.pk if owner else ''}/{user_id}",
        request={"messages": [{"role": "user", "content": word}]},
        reply=word,
        tool_calls=[{"id": "1", "name": "search", "arguments": word}],
        error=word,
        attempts=[{"model": "a", "outcome": "cut_off", "seconds": 1, "error": word}],
        documents=[word],
        mends=word,
    )
    ToolRun.objects.create(
        envelope=turn, step_number=1, number=1, outcome="ok", key=str(uuid4()), arguments=[word]
    )
    Feedback.objects.create(turn=turn, by=owner, rating=Rating.DOWN, comment=word)
    factories.failed_turn(talk, ValueError(word))
    events.publish(turn.target_list, "token", text=word)
    row = Handover.objects.create(conversation=talk, why="person", note=word, closed=now())
    Notification.objects.create(handover=row, channel="email", error=word)
    talk.message("staff", word).save()
    talk.open_clarification = {"question": word, "reason": "vague"}
    talk.save()
    return talk


def test_a_user_who_is_forgotten_leaves_no_word_and_others_lose_none(
    client: Client, clerk: User
) -> None:
    key = factories.key(clerk)
    talked(clerk, USER, WORD)
    talked(clerk, USER, WORD)
    talked(clerk, OTHER, OTHER)
    held = found(WORD)
    assert {
        "conversations_conversation",
        "conversations_message",
        "conversations_feedback",
        "conversations_handover",
        "conversations_notification",
        "agents_envelope",
        "agents_step",
        "agents_fault",
        "agents_modelcall",
        "agents_toolrun",
    } <= held
    assert any(place.startswith("turn:") for place in held)

    answer = client.delete(f"/api/users/{USER}/", headers=key)

    receipt = answer.json()
    assert (answer.status_code, receipt["user_id"], receipt["left"]) == (200, USER, 0)
    assert receipt["removed"]["conversations"] == 2
    assert receipt["removed"]["model_calls"] == 2
    assert min(receipt["removed"].values()) > 0
    assert (receipt["id"], receipt["time"]) > ("", "")
    assert found(WORD) | found(USER) == set()
    assert tables(found(OTHER)) == tables(held)


def test_what_was_paid_for_a_forgotten_turn_stays_counted_and_bounds_the_day(
    clerk: User, settings: LazySettings
) -> None:
    talk = talked(clerk, USER, WORD)
    today = now().date()
    before = [figures(today, today, by) for by in ("day", "role", "model")]
    settings.DAILY_BUDGET_PER_KEY = 0.0004
    forget(talk)
    assert [figures(today, today, by) for by in ("day", "role", "model")] == before
    (row,) = figures(today, today, "owner")["rows"]
    assert (row["name"], row["priced_cost"]) == (clerk.username, 0.0005)
    with pytest.raises(ModelFailure, match="budget"):
        check_budget(f"user:{clerk.pk}/{OTHER}", "")
    call = ModelCall.objects.get()
    assert call.attempts == [{"model": "a", "outcome": "cut_off", "seconds": 1}]
    assert not call.reusable


def test_a_reply_that_comes_after_its_turn_was_forgotten_is_paid_and_not_kept(clerk: User) -> None:
    talk = factories.conversation(owner=clerk)
    turn = factories.turn(talk, status=Status.RUNNING)
    call = factories.model_call(turn, outcome=Outcome.SENT)
    forget(talk)
    journal.store_reply(call, Reply(WORD, usage=Usage(70, 7), seconds=2.0), [])
    journal.amend(call.pk, ModelFailure(Outcome.MALFORMED, WORD))
    kept = ModelCall.objects.get()
    assert (kept.input_tokens, kept.output_tokens, kept.outcome) == (70, 7, Outcome.OK)
    assert found(WORD) == set()


def test_a_key_forgets_what_it_sees_of_a_user(client: Client, clerk: User) -> None:
    """Each key with the owners whose conversations of the user are left."""
    other = User.objects.create_user("other")
    root = User.objects.create_superuser("root")
    shop = Assistant.objects.create(name="shop")
    table: list[tuple[dict[str, str], set[str]]] = [
        (factories.key(User.objects.create_user("stranger")), {"clerk", "other"}),
        (factories.key(clerk), {"other"}),
        (factories.key(clerk, scopes=["chat", "admin"]), {"other"}),
        (factories.key(root, scopes=["chat", "admin"]), set()),
        (factories.key(clerk, assistant=shop), {"clerk", "other"}),
        (factories.key(clerk, collections=["loans"]), {"clerk", "other"}),
    ]
    for headers, left in table:
        for owner in (clerk, other):
            talk = factories.conversation(str(uuid4()), owner=owner)
            Conversation.objects.filter(pk=talk.pk).update(user_id=USER)
            factories.turn(talk)
        answer = client.delete(f"/api/users/{USER}/", headers=headers)
        assert answer.status_code == HTTPStatus.OK
        kept = set(Conversation.objects.values_list("owner__username", flat=True))
        assert kept == left, headers
        assert answer.json()["removed"]["conversations"] == 2 - len(left)
        Conversation.objects.all().delete()
    assert client.delete(f"/api/users/{USER}/").status_code == HTTPStatus.UNAUTHORIZED
    documents = factories.key(clerk, scopes=["documents"])
    refused = client.delete(f"/api/users/{USER}/", headers=documents)
    assert refused.status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("user_id", ["nobody", "ann@example.org", "a/b c", "%00", "ü" * 128])
def test_whoever_is_not_known_gets_a_receipt_that_says_so(
    client: Client, clerk: User, user_id: str
) -> None:
    answer = client.delete(f"/api/users/{quote(user_id)}/", headers=factories.key(clerk))
    assert answer.status_code == HTTPStatus.OK
    assert answer.json()["user_id"] == user_id
    assert set(answer.json()["removed"].values()) == {0}


def test_more_than_goes_at_once_is_said_to_be_left(clerk: User) -> None:
    for _ in range(3):
        factories.conversation(str(uuid4()), owner=clerk)
    Conversation.objects.update(user_id=USER)
    first = forget_user(USER, Conversation.objects.all(), most=2)
    second = forget_user(USER, Conversation.objects.all(), most=2)
    counts = [(each.removed["conversations"], each.left) for each in (first, second)]
    assert counts == [(2, 1), (1, 0)]


def run(*words: str) -> Any:
    out = StringIO()
    call_command("forget", *words, stdout=out)
    return json.loads(out.getvalue())


def test_the_command_forgets_a_user_of_all_owners_or_one_and_a_conversation(clerk: User) -> None:
    local, owned = talked(None, USER, WORD), talked(clerk, USER, WORD)
    assert run("--user", USER, "--owner", "clerk")["removed"]["conversations"] == 1
    assert list(Conversation.objects.all()) == [local]
    with pytest.raises(CommandError, match="no such conversation"):
        run("--conversation", str(owned.pk))
    assert run("--conversation", str(local.pk))["removed"]["messages"] > 0
    assert found(WORD) == set()
    assert run("--user", USER)["removed"]["conversations"] == 0
    with pytest.raises(CommandError, match="--user takes an id"):
        run("--user", "")
