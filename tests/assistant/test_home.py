"""Home of the admin: what turns came to, and what waits for whom."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.timezone import now
from pytest_django import Settings

from agents.billing.refunds import open_case
from agents.models import Envelope
from agents.names import Role, Status
from agents.steps import presence
from assistant.home import RANGES, figures, measured
from assistant.needs import needs
from conversations.endings import Ending, Gap, Kind
from conversations.models import Conversation, Feedback
from knowledge.models import Ingest
from tests import factories
from tests.agents.billing.accounts import account

WEEK = RANGES["7d"]


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def talk(db: None) -> Conversation:
    return factories.conversation()


def ended(talk: Conversation, kind: Kind, *, hours: float = 1, **values: Any) -> Envelope:
    """A turn that began so long ago and ended so."""
    turn = factories.turn(talk)
    values = {"seconds": 2.0, "first_word": 1.0, "cost": Decimal("0.5")} | values
    began = now() - timedelta(hours=hours)
    Ending.objects.filter(turn=turn).update(kind=kind, created=began, **values)
    return turn


def test_turns_are_counted_by_how_they_ended(talk: Conversation) -> None:
    for kind in (Kind.ANSWERED, Kind.ANSWERED, Kind.REFUSED, Kind.DECLINED, Kind.CANCELLED):
        ended(talk, kind)
    ended(talk, Kind.ASKED_BACK, hours=30)
    ended(talk, Kind.FAILED, hours=24 * 8)
    whole, steps = measured(WEEK, {})
    assert whole.counts == {
        "answered": 2, "closest place only": 0, "asked back": 1, "declined": 2, "failed": 0,
        "others": 1,
    }  # fmt: skip
    assert whole.cost == pytest.approx(3.0)
    assert len(steps) == 28
    turns = [sum(step.counts.values()) for step in steps.values()]
    assert (sum(turns), next(filter(None, turns))) == (6, 1)


def test_only_replies_tell_how_long_one_waits(talk: Conversation) -> None:
    ended(talk, Kind.ANSWERED, seconds=2, first_word=1)
    ended(talk, Kind.CLOSEST, seconds=4, first_word=2)
    ended(talk, Kind.CANCELLED, seconds=90, first_word=90)
    whole, _ = measured(WEEK, {})
    assert whole.seconds == pytest.approx([3.0, 3.9])
    assert whole.first_word == pytest.approx([1.5, 1.95])


def test_figures_are_those_of_the_assistant_or_collection_that_is_chosen(
    talk: Conversation,
) -> None:
    shop, handbook = factories.conversation("shop-1"), factories.collection("handbook")
    Conversation.objects.filter(pk=shop.pk).update(assistant="shop")
    talk.collections.set([handbook])
    ended(shop, Kind.ANSWERED)
    rated = ended(talk, Kind.FAILED)
    Feedback.objects.create(turn=rated, rating="down")
    found = {
        name: measured(WEEK, chosen)[0]
        for name, chosen in (
            ("all", {}),
            ("shop", {"assistant": "shop"}),
            ("handbook", {"collection": "handbook"}),
            ("both", {"assistant": "shop", "collection": "handbook"}),
        )
    }
    assert {name: sum(each.counts.values()) for name, each in found.items()} == {
        "all": 2, "shop": 1, "handbook": 1, "both": 0,
    }  # fmt: skip
    assert {name: each.down for name, each in found.items()} == {
        "all": 1, "shop": 0, "handbook": 1, "both": 0,
    }  # fmt: skip


def test_a_range_that_does_not_exist_is_the_usual_one(talk: Conversation) -> None:
    shown = figures("'; DROP", "x\0", "", with_cost=True)
    assert (shown["range"], shown["assistant"]) == ("7d", "x")


def test_a_turn_notes_its_time_its_first_word_and_its_cost(talk: Conversation) -> None:
    turn = factories.turn(talk, status=Status.RUNNING)
    began = now() - timedelta(seconds=10)
    Envelope.objects.filter(pk=turn.pk).update(create_ts=began)
    written: dict[str, Any] = {"role": Role.RESPONSE, "seconds": 4.0, "first_token_seconds": 1.0}
    factories.model_call(turn, created=began + timedelta(seconds=8), cost="0.25", **written)
    factories.model_call(turn, step=2, cost=None)
    factories.end(turn)
    ending = Ending.objects.get(turn=turn)
    assert 10 <= (ending.seconds or 0) < 60
    assert ending.first_word == pytest.approx(5.0, abs=0.01)
    assert ending.cost == Decimal("0.25")


def test_an_answer_that_no_model_wrote_appears_at_its_end(talk: Conversation) -> None:
    ending = Ending.objects.get(turn=factories.turn(talk))
    assert ending.seconds == ending.first_word


def said(user: User) -> dict[str, int | str]:
    return {need.said: need.count for need in needs(user)}


def test_home_names_what_waits_and_leads_there(
    root: User, client: Client, talk: Conversation, settings: Settings
) -> None:
    settings.DAILY_BUDGET = 1.0
    listen()
    assert said(root) == {}
    body = factories.collection("handbook")
    Ingest.objects.create(collection=body, name="x.pdf", status=Ingest.Status.FAILED)
    factories.turn(factories.conversation("desk-2"), status=Status.WITH_STAFF)
    missed = factories.turn(talk)
    Ending.objects.filter(turn=missed).update(
        is_missed=True, gap=Gap.objects.create(leader=missed.ending)
    )
    failed = factories.failed_turn(talk, ValueError("broken"))
    factories.model_call(failed, cost="0.9")
    case = open_case(
        "u1", amount=Decimal(1), invoice_number=account("u1").number, reason="other", description=""
    )
    type(case).objects.update(due=date(2020, 1, 1))
    assert said(root) == {
        "conversation waits for staff": 1,
        "of today's budget of 1 USD is spent": "90 %",
        "refund case awaits a decision, 1 late": 1,
        "unanswered question": 1,
        "ingest failed in the last 7 days": 1,
        "fault in the last 7 days": 1,
    }
    client.force_login(root)
    for need in needs(root):
        assert client.get(need.link).status_code == 200, need


def listen() -> None:
    """Let there be a worker for everything."""
    presence.announce([role.queue for role in Role])
    presence.announce([*presence.SERVICES.values()])


def test_a_missing_process_is_the_first_thing_that_is_said(root: User) -> None:
    listen()
    presence.withdraw([*presence.SERVICES.values()])
    assert said(root) == {"without a process: ingest, sweeper": 2}


def test_who_may_see_little_is_told_little(client: Client, db: None) -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    client.force_login(clerk)
    shown = client.get("/admin/")
    assert ("home" in shown.context, shown.context["needs"]) == (False, [])
    clerk.user_permissions.add(Permission.objects.get(codename="view_conversation"))
    shown = client.get("/admin/?range=24h")
    assert "Cost" not in {title for title, *_ in shown.context["home"]["tiles"]}
    assert [chart.title for chart in shown.context["home"]["charts"]].count("Cost") == 0
    assert shown.context["home"]["range"] == "24h"
