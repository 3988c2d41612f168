"""The stream tells a turn to its asker while it happens, and to nobody else."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from agents import envelopes
from agents.models import Envelope
from agents.names import Status
from agents.steps import events
from conversations import stream
from conversations.event_shapes import EVENTS
from conversations.models import Conversation
from tests import factories
from tests.conversations.conftest import Followed
from tests.factories import key

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop() -> User:
    return User.objects.create_user("shop")


@pytest.fixture
def running(shop: User) -> Envelope:
    """A turn of the shop's that has only just begun."""
    return factories.turn(factories.conversation(owner=shop), status=Status.RUNNING)


@pytest.mark.usefixtures("listening")
def test_a_turn_knows_the_key_it_was_asked_with_and_not_the_key_itself(
    client: Client, shop: User
) -> None:
    ids = []
    for sent in (key(shop), key(shop)):
        client.post(
            "/api/chat/", {"message": "/help", "wait": False}, "application/json", headers=sent
        )
        ids.append(Envelope.objects.order_by("create_ts").last().memory["key"])  # type: ignore[union-attr]
        assert ids[-1] not in sent["Authorization"]
    assert len(set(filter(None, ids))) == 2


Follow = Callable[..., Followed]


@pytest.fixture
def follow(port: int) -> Iterator[Follow]:
    """Follow a turn of this id with these headers."""
    opened: list[Followed] = []

    def begin(turn: object, headers: dict[str, str]) -> Followed:
        opened.append(Followed(port, headers, reverse("turn-events", args=[turn])))
        return opened[-1]

    yield begin
    for followed in opened:
        followed.close()


def end(envelope: Envelope, response: str = "Yes.") -> None:
    with transaction.atomic():
        locked = Envelope.objects.select_for_update().get(pk=envelope.pk)
        locked.payload["response"] = response
        envelopes.end(locked, Status.COMPLETED)


def tell(envelope: Envelope, text: str) -> None:
    events.publish(envelope.target_list, "token", step=1, attempt=1, text=text, replaces=False)


def test_events_arrive_while_the_turn_runs(follow: Follow, running: Envelope, shop: User) -> None:
    followed = follow(running.pk, key(shop))
    assert followed.response.status == HTTPStatus.OK
    assert followed.response.headers["Content-Type"].startswith("text/event-stream")
    assert followed.response.headers["X-Accel-Buffering"] == "no"
    assert followed.next()["event"] == "workflow_start"
    for word in ("Unused ", "days "):
        tell(running, word)
        # Read before the next one is published: nothing is held back.
        assert followed.next()["data"]["text"] == word
    end(running, "Unused days end.")
    last = followed.next()
    assert last["event"] == "workflow_complete"
    assert last["data"]["status"] == "completed"
    assert last["data"]["reply"]["reply"] == "Unused days end."
    assert followed.next() == {}


def test_a_turn_is_told_to_begin_before_anybody_can_work_on_it() -> None:
    with transaction.atomic():
        begun = envelopes.start(
            {"text": "Hello"}, conversation_id=uuid.uuid4(), message_id=uuid.uuid4()
        )
        told = next(each for each in events.follow(begun.target_list, seconds=20) if each)
    assert told[1] == "workflow_start"


def test_who_comes_late_hears_everything_from_the_beginning(
    follow: Follow, running: Envelope, shop: User
) -> None:
    tell(running, "Unused ")
    end(running)
    names = [event["event"] for event in follow(running.pk, key(shop)).rest()]
    assert names == ["workflow_start", "token", "workflow_complete"]


@pytest.mark.usefixtures("working")
def test_every_event_has_its_shape_and_a_later_id_and_a_stream_goes_on_after_each(
    client: Client, follow: Follow, shop: User
) -> None:
    asker = key(shop)
    body = {"message": "/help", "wait": False}
    turn = client.post("/api/chat/", body, "application/json", headers=asker).json()["turn_id"]
    told = follow(turn, asker).rest()
    for each in told:
        EVENTS[each["event"]].model_validate(each["data"])
    ids = [tuple(map(int, each["id"].split("-"))) for each in told]
    assert ids == sorted(set(ids))
    assert {"workflow_start", "agent_start", "agent_complete"} <= {each["event"] for each in told}
    for place, each in enumerate(told[:-1]):
        again = follow(turn, asker | {"Last-Event-ID": each["id"]})
        assert again.rest() == told[place + 1 :]


def test_events_that_a_long_turn_has_pushed_out_leave_a_gap(
    follow: Follow, running: Envelope, shop: User
) -> None:
    asker = key(shop)
    first = follow(running.pk, asker).next()["id"]
    tell(running, "one")
    tell(running, "two")
    events.connection().xtrim(running.target_list, maxlen=1, approximate=False)
    end(running)
    names = [each["event"] for each in follow(running.pk, asker | {"Last-Event-ID": first}).rest()]
    assert names == ["gap", "token", "workflow_complete"]


def test_the_schema_tells_of_every_event(client: Client) -> None:
    schema = client.get("/api/schema/", headers={"Accept": "application/json"}).json()
    told = schema["paths"]["/api/turns/{turn_id}/events/"]["get"]["responses"]["200"]
    for name, shape in EVENTS.items():
        assert f"`{name}` {{{', '.join(shape.model_fields)}}}" in told["description"]


def test_a_lost_connection_goes_on_after_the_last_event(
    follow: Follow, running: Envelope, shop: User
) -> None:
    asker = key(shop)
    first = follow(running.pk, asker)
    first.next()
    tell(running, "one")
    seen = first.next()["id"]
    first.close()
    tell(running, "two")
    end(running)
    again = follow(running.pk, asker | {"Last-Event-ID": seen})
    assert [event["data"].get("text") for event in again.rest()] == ["two", None]


def test_who_heard_the_end_is_told_to_stay_away(
    follow: Follow, running: Envelope, shop: User
) -> None:
    end(running)
    asker = key(shop)
    last = follow(running.pk, asker).rest()[-1]
    again = follow(running.pk, asker | {"Last-Event-ID": last["id"]})
    assert again.response.status == HTTPStatus.NO_CONTENT


def test_events_that_are_gone_leave_a_gap_and_the_reply(
    follow: Follow, running: Envelope, shop: User
) -> None:
    end(running, "Yes, in March.")
    events.connection().delete(running.target_list)
    gap, last = follow(running.pk, key(shop) | {"Last-Event-ID": "5-0"}).rest()
    assert gap["event"] == "gap"
    assert last["data"]["reply"]["reply"] == "Yes, in March."


def test_the_end_is_told_although_its_event_got_lost(
    follow: Follow, running: Envelope, shop: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK_MS", 100)
    followed = follow(running.pk, key(shop))
    followed.next()
    Envelope.objects.filter(pk=running.pk).update(status=Status.COMPLETED)
    assert followed.next()["event"] == "workflow_complete"


def test_a_forgotten_turn_ends_its_stream(
    follow: Follow, running: Envelope, shop: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK_MS", 100)
    followed = follow(running.pk, key(shop))
    followed.next()
    Envelope.objects.all().delete()
    assert followed.next()["data"]["status"] == "forgotten"


def test_nobody_else_follows_a_turn(follow: Follow, running: Envelope) -> None:
    stranger = follow(running.pk, key(User.objects.create_user("stranger")))
    assert stranger.response.status == HTTPStatus.NOT_FOUND
    assert json.loads(stranger.response.read())["code"] == "not_found"
    anonymous = follow(running.pk, {"Accept": "text/event-stream"})
    assert anonymous.response.status == HTTPStatus.UNAUTHORIZED
    assert anonymous.response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("entry", ["$", "0", "1-1-1", "+-1", "99999999999999999999-0"])
def test_an_id_that_no_event_has_is_refused(
    follow: Follow, running: Envelope, shop: User, entry: str
) -> None:
    followed = follow(running.pk, key(shop) | {"Last-Event-ID": entry})
    assert followed.response.status == HTTPStatus.BAD_REQUEST


def test_the_browser_that_asked_follows_by_its_session(
    follow: Follow, client: Client, talk: Conversation, settings: Any
) -> None:
    envelope = factories.turn(talk, status=Status.RUNNING)
    end(envelope)
    session = {"Cookie": f"sessionid={client.session.session_key}", "Accept": "text/event-stream"}
    assert follow(envelope.pk, session).rest()[-1]["event"] == "workflow_complete"
    settings.START_PAGE = "staff"
    assert follow(envelope.pk, session).response.status == HTTPStatus.UNAUTHORIZED


def test_who_goes_away_leaves_nothing_behind_and_ends_nothing(
    follow: Follow, running: Envelope, shop: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK_MS", 100)
    followed = follow(running.pk, key(shop))
    followed.next()
    assert len(stream._streams) == 1
    followed.close()
    until = time.monotonic() + 60
    while stream._streams and time.monotonic() < until:
        time.sleep(0.02)
    assert not stream._streams
    running.refresh_from_db()
    assert running.status == Status.RUNNING


def test_more_streams_than_a_process_can_follow_are_sent_away(
    follow: Follow, running: Envelope, shop: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MOST_STREAMS", 0)
    followed = follow(running.pk, key(shop))
    assert followed.response.status == HTTPStatus.TOO_MANY_REQUESTS
    assert followed.response.headers["Retry-After"] == "5"
