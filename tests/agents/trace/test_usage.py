"""Usage sums what models were asked and what it cost, and does not know what nobody knows."""

from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from agents.models import Budget, Envelope, Price
from agents.trace.trace import trace
from agents.trace.usage import figures, usage_of_turn
from tests import factories

DAY = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)


@pytest.fixture
def turn(db: None) -> Envelope:
    return factories.turn(factories.conversation())


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_a_turn_without_models_cost_nothing(turn: Envelope) -> None:
    assert usage_of_turn(turn.pk) == {
        "model_calls": 0,
        "cached_calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "cost": 0.0,
        "cost_known": True,
    }


def test_a_turn_counts_its_calls_and_those_that_a_cache_spared(turn: Envelope) -> None:
    first = factories.model_call(turn)
    factories.model_call(
        turn, cached_from=first, cost=0, input_tokens=None, output_tokens=None, seconds=0
    )
    spent = usage_of_turn(turn.pk)
    assert (spent["model_calls"], spent["cached_calls"]) == (1, 1)
    assert (spent["input_tokens"], spent["output_tokens"]) == (100, 10)
    assert (spent["cost"], spent["cost_known"]) == (0.0005, True)


def test_one_unknown_price_makes_the_cost_unknown(turn: Envelope) -> None:
    factories.model_call(turn)
    factories.model_call(turn, cost=None)
    assert (usage_of_turn(turn.pk)["cost"], usage_of_turn(turn.pk)["cost_known"]) == (None, False)


@pytest.mark.parametrize(
    ("outcome", "known"),
    [("unreachable", True), ("budget_spent", True), ("out_of_time", True), ("timeout", False)],
)
def test_who_did_not_work_sends_no_bill(turn: Envelope, outcome: str, known: bool) -> None:
    factories.model_call(
        turn, outcome=outcome, cost=None, input_tokens=None, output_tokens=None, reply=""
    )
    assert usage_of_turn(turn.pk)["cost_known"] is known


def test_what_a_replay_asked_is_no_part_of_what_the_turn_cost(turn: Envelope) -> None:
    factories.model_call(turn)
    factories.model_call(turn, subject=f"replay/{turn.pk}/1", owner="replay")
    assert usage_of_turn(turn.pk)["model_calls"] == 1


def test_what_broke_off_may_have_cost_more(turn: Envelope) -> None:
    factories.model_call(turn, attempts=[{"outcome": "server_error"}])
    assert usage_of_turn(turn.pk)["cost_known"]
    factories.model_call(turn, attempts=[{"outcome": "cut_off"}])
    spent = usage_of_turn(turn.pk)
    assert (spent["cost"], spent["cost_known"]) == (0.001, False)


@pytest.mark.parametrize("outcome", ["sent", "lost"])
def test_a_call_of_which_nothing_was_heard_counts_as_the_most_it_can_cost(
    turn: Envelope, outcome: str
) -> None:
    factories.model_call(turn, created=DAY)
    factories.model_call(turn, outcome=outcome, created=DAY, output_tokens=None, cost="0.002")
    spent = usage_of_turn(turn.pk)
    assert (spent["model_calls"], spent["cost"], spent["cost_known"]) == (2, 0.0025, False)
    total = figures(DAY.date(), DAY.date(), "role")["total"]
    assert (total["possibly_paid_calls"], total["failed_calls"]) == (1, int(outcome == "lost"))
    assert total["cost"] == 0.0025
    call = trace(turn)["steps"][0]["model_calls"][1]
    assert (call["outcome"], call["cost_known"], call["ended"]) == (outcome, False, None)


def test_days_are_those_of_utc_and_the_last_one_counts(turn: Envelope) -> None:
    factories.model_call(turn, created=DAY)
    factories.model_call(turn, created=DAY + timedelta(hours=1))
    usage = figures(date(2026, 11, 20), date(2026, 11, 21), "day")
    assert [(row["name"], row["model_calls"]) for row in usage["rows"]] == [
        ("2026-11-20", 1),
        ("2026-11-21", 1),
    ]
    assert figures(date(2026, 11, 20), date(2026, 11, 20), "day")["total"]["model_calls"] == 1


def test_parts_come_by_what_they_cost_and_sum_up_to_the_total(turn: Envelope) -> None:
    factories.model_call(turn, role="router", cost="0.001", created=DAY)
    factories.model_call(turn, role="response", cost="0.002", created=DAY, seconds=1.5)
    factories.model_call(turn, role="response", cost=None, created=DAY, seconds=2.5)
    usage = figures(DAY.date(), DAY.date(), "role")
    response, router = usage["rows"]
    assert (response["name"], router["name"]) == ("response", "router")
    assert (response["cost"], response["priced_cost"]) == (None, 0.002)
    assert (response["unpriced_calls"], response["p50_seconds"]) == (1, 2.0)
    assert usage["total"]["priced_cost"] == pytest.approx(0.003)
    assert usage["total"]["input_tokens"] == sum(row["input_tokens"] for row in usage["rows"])


def test_owners_are_called_by_their_names(turn: Envelope) -> None:
    shop = User.objects.create_user("shop")
    factories.model_call(turn, owner=f"user:{shop.pk}/anna", created=DAY, cost="0.3")
    factories.model_call(turn, owner="local/", created=DAY, cost="0.1")
    factories.model_call(turn, owner="local/web-1", created=DAY, cost="0.1")
    factories.model_call(None, created=DAY, cost="0.1")
    usage = figures(DAY.date(), DAY.date(), "owner")
    names = [row["name"] for row in usage["rows"]]
    assert names == ["shop, for anna", "local", "nobody: documents"]


def asked(staff: Client, **query: str) -> Any:
    return staff.get(reverse("usage"), query)


def test_staff_ask_for_usage_over_http(staff: Client, turn: Envelope) -> None:
    factories.model_call(turn, created=DAY)
    answer = asked(staff, **{"from": "2026-11-01", "to": "2026-11-30", "by": "model"})
    assert answer.status_code == HTTPStatus.OK
    assert answer.json()["from"] == "2026-11-01"
    (row,) = answer.json()["rows"]
    assert (row["name"], row["model_calls"], row["cost"]) == ("small@fake", 1, 0.0005)


@pytest.mark.parametrize(
    "query",
    [{"by": "colour"}, {"from": "yesterday"}, {"from": "2026-11-02", "to": "2026-11-01"}],
)
def test_days_and_parts_that_make_no_sense_are_refused(
    staff: Client, query: dict[str, str]
) -> None:
    answer = asked(staff, **query)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert set(answer.json()["fields"]) <= {"by", "from"}


def test_usage_is_for_staff_only(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("widget"))
    assert asked(client).status_code == HTTPStatus.FORBIDDEN


def test_the_page_draws_the_dearest_bar_longest(staff: Client, turn: Envelope) -> None:
    factories.model_call(turn, role="router", cost="0.001", created=DAY)
    factories.model_call(turn, role="response", cost="0.002", created=DAY)
    page = staff.get(
        reverse("admin:agents_modelcall_usage"),
        {"from": "2026-11-20", "to": "2026-11-20", "by": "role"},
    ).content.decode()
    assert page.index('width="100.00"') < page.index('width="50.00"')
    assert "response" in page


def test_the_page_shows_the_last_days_when_none_are_given(staff: Client, turn: Envelope) -> None:
    factories.model_call(turn)
    page = staff.get(reverse("admin:agents_modelcall_usage")).content.decode()
    assert page.count('class="bar-ran"') == 1
    assert f'value="{now().date()}"' in page


def test_the_page_says_what_is_wrong_with_its_days(staff: Client) -> None:
    page = staff.get(
        reverse("admin:agents_modelcall_usage"), {"from": "2026-11-02", "to": "2026-11-01"}
    ).content.decode()
    assert "The first day comes after the last." in page


@pytest.mark.parametrize(
    ("model", "price", "message"),
    [
        ("gpt-9@nowhere", "1", "Write model@provider"),
        ("unheard-of", "1", "Write model@provider"),
        ("gpt-9@openai", "-1", "This must be 0 or more."),
    ],
)
def test_prices_that_cannot_hold_are_refused(
    staff: Client, model: str, price: str, message: str
) -> None:
    form = {"model": model, "input_per_million": price, "output_per_million": "1"}
    page = staff.post(reverse("admin:agents_price_add"), form).content.decode()
    assert message in page
    assert not Price.objects.exists()


def test_a_price_is_kept_under_the_name_that_calls_have(staff: Client) -> None:
    form = {"model": "gpt-9", "input_per_million": "1", "output_per_million": "2"}
    staff.post(reverse("admin:agents_price_add"), form)
    assert Price.objects.get().model == "gpt-9@openai"


def test_a_budget_below_zero_is_refused(staff: Client) -> None:
    owner = User.objects.get(username="root")
    form = {"owner": str(owner.pk), "usd_per_day": "-1"}
    page = staff.post(reverse("admin:agents_budget_add"), form).content.decode()
    assert "This must be 0 or more." in page
    assert not Budget.objects.exists()


def test_usage_is_told_by_key_and_by_conversation(staff: Client, turn: Envelope) -> None:
    user = User.objects.create_user("website")
    factories.key(user)
    token = user.auth_token_set.get()
    factories.model_call(turn, key=token.digest[:12], cost="0.3")
    factories.model_call(turn, key="0" * 12, cost="0.2")
    factories.model_call(cost="0.1")
    day = now().date()
    by_key = figures(day, day, "key")["rows"]
    assert [row["name"] for row in by_key] == [
        f"website, {token.token_key}",
        f"revoked: {'0' * 12}",
        "without a key",
    ]
    by_talk = figures(day, day, "conversation")["rows"]
    assert [(row["id"], row["priced_cost"]) for row in by_talk] == [
        (str(turn.conversation_id), 0.5),
        ("", 0.1),
    ]
    page = staff.get(reverse("admin:agents_modelcall_usage"), {"by": "conversation"})
    where = reverse("admin:conversations_conversation_change", args=[turn.conversation_id])
    assert where in page.content.decode()


def test_usage_can_be_taken_along_as_a_file(staff: Client, turn: Envelope) -> None:
    factories.model_call(turn, role="=1+1", cost="0.3")
    answer = staff.get(reverse("admin:agents_modelcall_usage"), {"by": "role", "format": "csv"})
    header, row = answer.content.decode().splitlines()
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment; filename=" in answer["Content-Disposition"]
    assert header.split(",")[0] == "name"
    assert row.startswith("'=1+1,")


def test_charts_have_every_day_also_those_without_a_call(staff: Client, turn: Envelope) -> None:
    factories.model_call(turn)
    page = staff.get(reverse("admin:agents_modelcall_usage"))
    assert [len(chart.times) for chart in page.context["charts"]] == [30] * 4
    assert page.context["charts"][0].series[0].values[-1] == 0.0005
    far = staff.get(reverse("admin:agents_modelcall_usage"), {"from": "2020-01-01"})
    assert "charts" not in far.context
