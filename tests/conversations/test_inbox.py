"""The inbox of staff: what is in which box, who may answer, and what their buttons do."""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from pytest_django import Settings

from agents.models import Envelope
from agents.names import Status
from conversations import handover
from conversations.models import Conversation, Handover, Notification
from conversations.services import Asker, ask
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)
INBOX = "/admin/conversations/handover/"


@pytest.fixture(autouse=True)
def staffed(settings: Settings) -> None:
    """Somebody is there."""
    settings.HANDOVER = True


def colleague(name: str, *rights: str) -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return user


@pytest.fixture
def anna(client: Client) -> User:
    """Who may answer, logged in."""
    user = colleague("anna", "view_handover", "change_handover", "view_conversation")
    client.force_login(user)
    return user


@pytest.fixture
def ben() -> User:
    return colleague("ben", "view_handover", "change_handover")


def waiting(name: str) -> Handover:
    """A conversation that waits for staff, begun with its name."""
    talk = factories.conversation(name)
    factories.turn(talk, name, status=Status.WITH_STAFF, small_talk="person", response="Soon.")
    return talk.handovers.get()


def listed(client: Client, box: str = "") -> list[str]:
    """The first words of what a box shows, in its order."""
    response = client.get(INBOX, {"box": box} if box else {})
    return [row.first_words for row in response.context["cl"].result_list]


def press(client: Client, row: Handover, action: str, **fields: Any) -> str:
    """Press a button; return the page that follows."""
    sent = {"action": action, **fields}
    return client.post(f"{INBOX}{row.pk}/change/", sent, follow=True).content.decode()


def test_each_conversation_is_in_the_boxes_it_belongs_into(
    client: Client, anna: User, ben: User
) -> None:
    new, mine, bens, closed = (waiting(name) for name in ("new", "mine", "ben's", "closed"))
    handover.take(mine.pk, anna)
    handover.say(bens.pk, ben, "Hello")
    handover.close(closed.pk, ben, seen=None)
    assert listed(client) == ["new", "mine", "ben's"]
    assert listed(client, "new") == ["new"]
    assert listed(client, "mine") == ["mine"]
    assert listed(client, "waiting") == ["new", "mine"]
    assert listed(client, "closed") == ["closed"]
    page = client.get(INBOX).content.decode()
    assert 'New <span class="status">1</span>' in page
    assert 'Waiting for us <span class="status">2</span>' in page
    assert new.is_open


def test_who_waits_longest_comes_first_and_the_unread_are_marked(
    client: Client, anna: User
) -> None:
    late, early = waiting("late"), waiting("early")
    Handover.objects.filter(pk=early.pk).update(waiting_since=now() - timedelta(hours=1))
    assert listed(client) == ["early", "late"]
    assert "● late" in client.get(INBOX).content.decode()
    handover.say(late.pk, anna, "Hello")
    assert "● late" not in client.get(INBOX).content.decode()
    ask("Are you there?", Asker(None), session="late")
    assert "● late" in client.get(INBOX).content.decode()
    client.get(f"{INBOX}{late.pk}/change/")
    assert "● late" not in client.get(INBOX).content.decode()


def test_staff_take_write_and_give_back_with_a_note(client: Client, anna: User) -> None:
    row = waiting("invoice")
    assert 'value="take"' in client.get(f"{INBOX}{row.pk}/change/").content.decode()
    assert 'value="release"' in press(client, row, "take")
    page = press(client, row, "say", text="Which <b>invoice</b>? https://example.org/7")
    assert "&lt;b&gt;invoice&lt;/b&gt;" in page
    assert '<a href="https://example.org/7" rel="nofollow">' in page
    seen = row.conversation.messages.order_by("created").last()
    assert seen is not None
    stamp = seen.created.isoformat()
    assert f'name="seen" value="{stamp}"' in page
    page = press(client, row, "give_back", seen=stamp, note="It was invoice 7.")
    assert "The assistant answers again." in page
    row.refresh_from_db()
    assert (row.assigned, row.note, row.is_open) == (anna, "It was invoice 7.", False)
    assert row.conversation.messages.filter(is_note=True).get().by == anna


def test_what_was_refused_is_not_lost(client: Client, anna: User, ben: User) -> None:
    row = waiting("invoice")
    handover.take(row.pk, ben)
    page = press(client, row, "say", text="A long answer that took a while.")
    assert "ben has taken this conversation." in page
    assert "A long answer that took a while.</textarea>" in page
    assert "A long answer" not in client.get(f"{INBOX}{row.pk}/change/").content.decode()
    assert row.conversation.messages.count() == 2


def test_a_message_that_came_meanwhile_is_read_before_a_conversation_is_closed(
    client: Client, anna: User
) -> None:
    row = waiting("invoice")
    press(client, row, "take")
    seen = row.conversation.messages.order_by("created").last()
    ask("One more thing.", Asker(None), session="invoice")
    assert seen is not None
    assert "written meanwhile" in press(client, row, "close", seen=seen.created.isoformat())
    row.refresh_from_db()
    assert row.is_open


@pytest.mark.parametrize("action", ["take", "say", "release", "close", "give_back", "take_over"])
def test_who_may_only_read_changes_nothing(client: Client, action: str) -> None:
    row = waiting("invoice")
    client.force_login(colleague("clerk", "view_handover", "view_conversation"))
    page = client.get(f"{INBOX}{row.pk}/change/").content.decode()
    assert "Soon." in page
    assert 'name="action"' not in page
    for address in (
        f"{INBOX}{row.pk}/change/",
        reverse("admin:conversations_conversation_change", args=[row.conversation_id]),
    ):
        response = client.post(address, {"action": action, "text": "Hello"})
        assert response.status_code == HTTPStatus.FORBIDDEN
    before = row.taken
    row.refresh_from_db()
    assert (row.taken, row.is_open) == (before, True)


def test_staff_without_rights_do_not_see_the_inbox(client: Client) -> None:
    row = waiting("invoice")
    client.force_login(colleague("clerk"))
    for address in (INBOX, f"{INBOX}{row.pk}/change/"):
        assert client.get(address).status_code == HTTPStatus.FORBIDDEN


@pytest.mark.usefixtures("listening")
def test_staff_take_a_running_conversation_over(client: Client, anna: User) -> None:
    envelope = ask("How?", Asker(None), session="s")
    Envelope.objects.update(process_count=3)
    address = reverse("admin:conversations_conversation_change", args=[envelope.conversation_id])
    assert "Answer myself" in client.get(address).content.decode()
    response = client.post(address, {"action": "take_over"})
    row = Handover.objects.get()
    assert response["Location"] == f"{INBOX}{row.pk}/change/"
    assert (row.assigned, row.why) == (anna, Handover.Why.STAFF)
    # What the assistant would have said is found in its turn.
    assert f"/envelope/{envelope.pk}/" in client.get(response["Location"]).content.decode()
    page = client.get(address).content.decode()
    assert "Answer myself" not in page
    assert f"{INBOX}{row.pk}/change/" in page
    assert (
        "with staff already"
        in client.post(address, {"action": "take_over"}, follow=True).content.decode()
    )


def test_where_nobody_is_handed_over_no_button_offers_it(
    client: Client, anna: User, settings: Settings
) -> None:
    settings.HANDOVER = False
    talk = factories.conversation("s")
    factories.turn(talk)
    address = reverse("admin:conversations_conversation_change", args=[talk.pk])
    assert "Answer myself" not in client.get(address).content.decode()
    assert client.post(address, {"action": "take_over"}).status_code == HTTPStatus.FORBIDDEN
    assert Conversation.objects.get().status == Conversation.Status.OPEN


def test_staff_see_that_nobody_could_be_told(client: Client, anna: User) -> None:
    row = waiting("invoice")
    Notification.objects.create(
        handover=row, channel=Notification.Channel.WEBHOOK, attempts=3, error="404 Not Found"
    )
    page = client.get(f"{INBOX}{row.pk}/change/").content.decode()
    assert "Nobody was told by webhook, attempt 3: 404 Not Found" in page
