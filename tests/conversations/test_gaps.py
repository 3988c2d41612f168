"""Unanswered questions: which turns count, what stands together, and what staff do about it."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from agents.models import Envelope
from agents.names import Status
from conversations import gaps
from conversations.endings import Ending, Gap, Kind, kind_of
from conversations.erasure import forget
from conversations.feedback import rate
from conversations.models import Conversation
from tests import factories

INBOX = "/admin/conversations/gap/"
NOTHING = {"stage": "clarification", "clarification_reason": "insufficient_context"}
ASKS = {"stage": "clarification", "clarification_reason": "vague_request"}
HOLIDAY = "How many days of holiday do I have?"
WAITING = Status.AWAITING_USER


@pytest.mark.parametrize(
    ("status", "payload", "kind"),
    [
        (Status.COMPLETED, {"stage": "quality"}, Kind.ANSWERED),
        (Status.COMPLETED, {"stage": "quality", "answer_form": "closest"}, Kind.CLOSEST),
        (Status.AWAITING_USER, NOTHING, Kind.DECLINED),
        (Status.AWAITING_USER, ASKS, Kind.ASKED_BACK),
        (Status.COMPLETED, ASKS, Kind.DECLINED),
        (
            Status.COMPLETED,
            ASKS | {"clarification_reason": "harmful_content"},
            Kind.REFUSED,
        ),
        (Status.COMPLETED, ASKS | {"clarification_reason": "off_topic"}, Kind.OUT_OF_SCOPE),
        (Status.COMPLETED, {"stage": "fallback"}, Kind.FALLBACK),
        (Status.COMPLETED, {"stage": "fallback", "small_talk": "thanks"}, Kind.SMALL_TALK),
        (Status.COMPLETED, {"stage": "command"}, Kind.SMALL_TALK),
        (Status.COMPLETED, {"stage": "essence", "clarification_result": "exit"}, Kind.SMALL_TALK),
        (Status.FAILED, {"stage": "response"}, Kind.FAILED),
        (Status.EXPIRED, {"stage": "search"}, Kind.FAILED),
        (Status.CANCELLED, {"stage": "search"}, Kind.CANCELLED),
        (Status.WITH_STAFF, {"stage": "clarification"}, Kind.WITH_STAFF),
    ],
)
def test_a_turn_ends_in_one_word(status: Status, payload: dict[str, Any], kind: Kind) -> None:
    assert kind_of(status, payload) is kind


@pytest.fixture
def editor(client: Client, db: None) -> User:
    """Who may settle questions, logged in."""
    user = User.objects.create_user("editor", is_staff=True)
    rights = ("view_gap", "change_gap", "view_conversation")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client.force_login(user)
    return user


def unanswered(text: str, session: str = "desk-1", **payload: Any) -> Envelope:
    """A turn to which nothing was found."""
    talk = Conversation.objects.filter(session=session).first()
    talk = talk or factories.conversation(session)
    values = NOTHING | {"language": "en"} | payload
    return factories.turn(talk, text, status=WAITING, **values)


def shown(client: Client, **query: str) -> list[tuple[str, int]]:
    """What the list shows: each question and how often it was asked."""
    response = client.get(INBOX, query)
    return [(str(gap), gap.count) for gap in response.context["cl"].result_list]


def test_what_asks_for_the_same_stands_together(client: Client, editor: User) -> None:
    unanswered(HOLIDAY)
    unanswered("how many days of HOLIDAY do i have")
    unanswered("How many holiday days do I have?")
    unanswered("Where can I park my bicycle?")
    factories.turn(factories.conversation("desk-2"), "Is this answered?", stage="quality")

    assert gaps.gather() == 4
    assert gaps.gather() == 0

    assert shown(client) == [(HOLIDAY, 3), ("Where can I park my bicycle?", 1)]


def test_staff_who_try_something_leave_no_gap(client: Client, editor: User) -> None:
    unanswered(HOLIDAY, session="trial-1")
    assert gaps.gather() == 0


def test_what_was_dismissed_comes_back_when_it_is_asked_again(client: Client, editor: User) -> None:
    unanswered(HOLIDAY)
    gaps.gather()
    gap = Gap.objects.get()

    client.post(f"{INBOX}{gap.pk}/change/", {"action": "dismiss"})
    gap.refresh_from_db()
    assert (gap.settled, gap.settled_by) == ("dismissed", editor)
    assert shown(client) == []
    assert shown(client, state="settled") == [(HOLIDAY, 1)]

    unanswered(HOLIDAY, session="desk-2")
    gaps.gather()
    assert shown(client) == [(HOLIDAY, 2)]


def test_a_question_asked_back_about_counts_once_its_user_has_left(
    client: Client, editor: User
) -> None:
    turn = unanswered(HOLIDAY, **ASKS)
    gaps.gather()
    assert shown(client) == []

    Ending.objects.filter(turn=turn).update(created=now() - timedelta(hours=1))
    assert shown(client) == [(HOLIDAY, 1)]

    talk = Conversation.objects.get()
    factories.turn(talk, "In 2026", stage="quality", context_type="clarification")
    assert shown(client) == []


def test_a_thumb_down_counts_until_it_goes_up(client: Client, editor: User) -> None:
    turn = factories.turn(factories.conversation("desk-1"), HOLIDAY, stage="quality")
    rate(turn, editor, "down", "not what I asked")
    gaps.gather()
    assert shown(client, why="down") == [(HOLIDAY, 1)]
    assert "not what I asked" in client.get(f"{INBOX}{Gap.objects.get().pk}/change/").text

    rate(turn, editor, "up", "")
    assert shown(client) == []


def test_who_may_only_view_has_no_buttons(client: Client, editor: User) -> None:
    unanswered(HOLIDAY)
    gaps.gather()
    gap = Gap.objects.get()
    editor.user_permissions.remove(Permission.objects.get(codename="change_gap"))

    page = client.get(f"{INBOX}{gap.pk}/change/").text
    refused = client.post(f"{INBOX}{gap.pk}/change/", {"action": "dismiss"})

    assert HOLIDAY in page
    assert 'name="action"' not in page
    assert refused.status_code == 403
    gap.refresh_from_db()
    assert gap.settled_at is None


def test_asking_again_is_a_conversation_of_staff_and_its_reply_is_shown(
    client: Client, editor: User, listening: None
) -> None:
    factories.collection()
    unanswered(HOLIDAY)
    gaps.gather()
    gap = Gap.objects.get()
    page = f"{INBOX}{gap.pk}/change/"

    client.post(page, {"action": "ask"})

    gap.refresh_from_db()
    assert gap.tried is not None
    assert gap.tried.memory["text"] == HOLIDAY
    assert Conversation.objects.get(pk=gap.tried.conversation_id).owner == editor
    assert f'data-refresh="{page}"' in client.get(page).text


def test_forgetting_takes_the_words_along_and_another_question_leads(
    client: Client, editor: User
) -> None:
    unanswered(HOLIDAY, session="gone")
    unanswered("How many holiday days do I have?", session="stays")
    gaps.gather()

    forget(Conversation.objects.get(session="gone"))
    gaps.gather()
    assert shown(client) == [("How many holiday days do I have?", 1)]

    forget(Conversation.objects.get(session="stays"))
    gaps.gather()
    assert not Gap.objects.exists()


def test_turns_that_ended_before_are_noted_later(client: Client, editor: User) -> None:
    unanswered(HOLIDAY)
    Ending.objects.all().delete()

    assert gaps.backfill(10) == 1
    assert gaps.backfill(10) == 0
    assert gaps.gather() == 1


def test_the_list_asks_the_database_no_more_for_many(client: Client, editor: User) -> None:
    def queries() -> int:
        gaps.gather()
        with CaptureQueriesContext(connection) as captured:
            client.get(INBOX)
        return len(captured)

    unanswered(HOLIDAY)
    few = queries()
    for number, word in enumerate(("bicycles", "parental leave", "a new keyboard", "lunch")):
        unanswered(f"What about {word}?", session=f"many-{number}")
    assert queries() == few
