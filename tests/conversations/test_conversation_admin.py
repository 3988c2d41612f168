"""The list of conversations by what came of them, and a conversation that says why."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.models import Envelope
from agents.names import Status
from conversations.feedback import rate
from conversations.models import Conversation
from tests import factories

LIST = "/admin/conversations/conversation/"
NOTHING = {"stage": "clarification", "clarification_reason": "insufficient_context"}
FOUND = {
    "search_stats": {"confidence": 0.21, "threshold": 0.35},
    "search_results": [
        {"title": "Parking", "section": "Cars", "text": "Cars stand behind the house."}
    ],
}


@pytest.fixture
def support(client: Client, db: None) -> User:
    """Who may read conversations and turns, logged in."""
    user = User.objects.create_user("support", is_staff=True)
    rights = ("view_conversation", "view_envelope")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client.force_login(user)
    return user


@pytest.fixture
def talks(support: User) -> dict[str, Envelope]:
    """The last turn of each conversation, by its session."""
    answered = factories.turn(
        factories.conversation("answered"), "Do unused days end?", stage="quality",
        route="documentation", generation_confidence=0.4, citations_used=[factories.CITATION],
    )  # fmt: skip
    declined = factories.turn(
        factories.conversation("declined"), "Where can I park?", status=Status.AWAITING_USER,
        **NOTHING, **FOUND,
    )  # fmt: skip
    dear = factories.turn(factories.conversation("dear"), "A refund, please", route="billing")
    factories.model_call(dear, cost="0.2")
    rate(answered, support, "down", "too short")
    return {"answered": answered, "declined": declined, "dear": dear}


@pytest.mark.parametrize(
    ("query", "sessions"),
    [
        ({"outcome": "declined"}, {"declined"}),
        ({"outcome": "missed"}, {"declined", "answered"}),
        ({"outcome": "doubtful"}, {"answered"}),
        ({"route": "billing"}, {"dear"}),
        ({"feedback": "down"}, {"answered"}),
        ({"feedback": "none"}, {"declined", "dear"}),
        ({"cost": "dime"}, {"dear"}),
        ({"q": "park"}, {"declined"}),
    ],
)
def test_the_list_is_narrowed(
    client: Client, talks: dict[str, Envelope], query: dict[str, str], sessions: set[str]
) -> None:
    found = client.get(LIST, query).context["cl"].result_list
    assert {talk.session for talk in found} == sessions


def test_the_list_tells_what_came_of_each(client: Client, talks: dict[str, Envelope]) -> None:
    page = client.get(LIST).text
    assert "Do unused days end?" in page
    assert "nothing in the documents" in page
    assert "0.40" in page


def test_a_conversation_says_what_was_found_and_leads_to_why(
    client: Client, talks: dict[str, Envelope]
) -> None:
    turn = talks["declined"]
    page = client.get(f"{LIST}{turn.conversation_id}/change/").text
    why = f"/admin/agents/envelope/{turn.pk}/change/#decisions"

    assert f'href="{why}">why</a>' in page
    assert "confidence 0.21 where 0.35 is needed" in page
    assert "Cars stand behind the house." in page
    decided = client.get(why).text
    assert decided.index("Where can I park?") < decided.index('id="decisions"')


def test_a_conversation_shows_citations_and_feedback(
    client: Client, talks: dict[str, Envelope]
) -> None:
    page = client.get(f"{LIST}{talks['answered'].conversation_id}/change/").text
    assert "Leave &gt; Carry over" in page
    assert "too short" in page
    assert "#decisions" in page


def test_the_first_messages_of_a_long_one_are_shown(
    client: Client, talks: dict[str, Envelope], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conversations.admin.MOST_MESSAGES", 1)
    talk = Conversation.objects.get(session="dear")
    assert "The first 1 messages are shown." in client.get(f"{LIST}{talk.pk}/change/").text


def test_what_the_search_box_asks_is_answered_beside_the_hits(
    client: Client, support: User, listening: None
) -> None:
    support.user_permissions.add(Permission.objects.get(codename="view_document"))
    factories.collection("handbook")

    told = client.post(f"{LIST}try/", {"q": "Do unused days end?", "collection": ["handbook"]})

    turn = Envelope.objects.get()
    talk = Conversation.objects.get()
    assert (talk.owner, turn.memory["collections"]) == (support, ["handbook"])
    page = client.get(told["Location"]).text
    reply = f"{LIST}tried/{turn.pk}/"
    assert f'data-refresh="{reply}"' in page
    assert f'data-refresh="{reply}"' in client.get(reply).text
    client.force_login(User.objects.create_superuser("other"))
    assert client.get(reply).status_code == 404


def test_a_question_that_cannot_be_asked_says_why(client: Client, support: User) -> None:
    support.user_permissions.add(Permission.objects.get(codename="view_document"))
    told = client.post(f"{LIST}try/", {"q": " "}, follow=True)
    assert "The message is empty" in told.text
