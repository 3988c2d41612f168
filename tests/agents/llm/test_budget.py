"""Budget: who may still spend, and how it is said."""

import threading
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import close_old_connections
from django.utils.timezone import now
from pytest_django import Settings

from agents.llm import cost
from agents.llm.outcomes import ModelFailure, Outcome
from agents.models import Budget, ModelCall, Price
from prompts.prompt import Prompt
from tests.agents.llm.probe import GOOD, Verdict, llm
from tests.scripted import Response, Scripted

pytestmark = pytest.mark.django_db(transaction=True)


def spend(cost: float | None, owner: str = "user:1/ada", **changes: Any) -> None:
    values: dict[str, Any] = {
        "subject": f"spent/{ModelCall.objects.count()}",
        "number": 1,
        "role": "essence",
        "outcome": "ok",
    }
    ModelCall.objects.create(
        **values | changes,
        owner=owner,
        prompt="probe",
        model="fake@scripted",
        provider="scripted",
        request={},
        cost=None if cost is None else Decimal(str(cost)),
    )


def refused(owner: str = "user:1/ada", key: str = "") -> str:
    """Why the owner may not spend; empty: it may."""
    try:
        cost.check_budget(owner, key)
    except ModelFailure as failure:
        return str(failure) if failure.outcome is Outcome.BUDGET_SPENT else ""
    return ""


def test_without_a_budget_nobody_is_refused() -> None:
    spend(1000)
    assert not refused()


def test_when_the_days_budget_is_spent_everybody_is_refused(settings: Settings) -> None:
    settings.DAILY_BUDGET = 2.5
    spend(2.4)
    assert not refused("user:2/bob")
    spend(0.1)
    assert "budget of 2.5 USD for models is spent; raise DAILY_BUDGET" in refused("user:2/bob")
    assert refused("")


def test_what_was_spent_yesterday_or_has_no_known_price_does_not_count(settings: Settings) -> None:
    settings.DAILY_BUDGET = 1
    spend(5, created=now() - timedelta(days=1))
    spend(None)
    assert not refused()


def test_when_the_days_tokens_are_spent_everybody_is_refused(settings: Settings) -> None:
    settings.DAILY_TOKENS = 1000
    spend(None, input_tokens=900, output_tokens=99)
    spend(None, input_tokens=5000, created=now() - timedelta(days=1))
    spend(0, input_tokens=5000, cached_from=ModelCall.objects.order_by("pk")[0])
    assert not refused("user:2/bob")
    spend(0, output_tokens=1)
    assert "Today's 1,000 tokens of models are spent; raise DAILY_TOKENS" in refused("user:2/bob")


def test_the_tokens_of_a_key_are_its_own(settings: Settings) -> None:
    settings.DAILY_TOKENS_PER_KEY = 1000
    spend(0, "user:1/ada", key="abc", input_tokens=1000)
    assert "1,000 tokens for key abc of user:1 are spent" in refused("user:1/bob", "abc")
    assert not refused("user:1/ada", "def")
    assert not refused("user:2/ada", "abc")


def test_all_for_whom_a_key_asks_spend_its_budget(settings: Settings) -> None:
    settings.DAILY_BUDGET_PER_KEY = 1
    spend(0.5, "user:1/ada", key="abc")
    spend(0.5, "user:1/bob", key="abc")
    assert "for key abc of user:1 is spent" in refused("user:1/carol", "abc")
    assert not refused("user:1/carol", "def")
    assert not refused("user:1/carol")


def test_what_a_user_asks_without_a_key_counts_together(settings: Settings) -> None:
    settings.DAILY_BUDGET_PER_KEY = 1
    spend(0.5, "local/web-1")
    spend(0.5, "local/web-2")
    spend(0.5, "user:1/ada")
    assert "for local is spent" in refused("local/web-3")
    spend(5, "user:1/ada", key="abc")
    assert not refused("user:1/ada")
    assert not refused("user:11/ada")


def test_a_budget_of_admin_holds_for_all_keys_of_its_user(settings: Settings) -> None:
    user = get_user_model().objects.create_user("ada")
    spend(1, f"user:{user.pk}/", key="abc")
    spend(1, f"user:{user.pk}/", key="def")
    Budget.objects.create(owner=user, usd_per_day=2)
    for key in ("abc", "def", "new", ""):
        assert f"for user:{user.pk} is spent" in refused(f"user:{user.pk}/", key)


def test_what_belongs_to_nobody_is_held_to_the_whole_budget_only(settings: Settings) -> None:
    settings.DAILY_BUDGET_PER_KEY = 1
    spend(5, "")
    assert not refused("")


def test_the_budget_set_in_admin_replaces_the_setting(settings: Settings) -> None:
    user = get_user_model().objects.create_user("ada")
    settings.DAILY_BUDGET_PER_KEY = 1
    spend(3, f"user:{user.pk}/ada")
    assert refused(f"user:{user.pk}/ada")
    own = Budget.objects.create(owner=user, usd_per_day=5)
    assert not refused(f"user:{user.pk}/ada")
    own.usd_per_day = Decimal(2)
    own.save()
    assert "budget of 2.0000 USD" in refused(f"user:{user.pk}/ada")


def test_with_the_budget_spent_no_model_is_asked_but_earlier_replies_serve(
    models: Scripted, probe: Prompt, settings: Settings
) -> None:
    models.says("probe", GOOD)
    ada: dict[str, Any] = {"owner": "user:1/ada", "fresh": 60}
    llm(**ada).ask(probe, Verdict, question="Is it good?", hour="noon")
    settings.DAILY_BUDGET = 1
    spend(1)
    model = llm("spare@scripted", subject="test/next", **ada)
    assert model.ask(probe, Verdict, question="Is it good?", hour="noon").good
    with pytest.raises(ModelFailure) as caught:
        model.ask(probe, Verdict, question="Is it bad?", hour="noon")
    assert caught.value.outcome is Outcome.BUDGET_SPENT
    assert len(models.server.ledger) == 1
    assert ModelCall.objects.filter(outcome="budget_spent").count() == 1


@pytest.mark.parametrize("outcome", ["sent", "lost"])
def test_what_may_have_been_paid_counts_as_paid(settings: Settings, outcome: str) -> None:
    settings.DAILY_BUDGET = 1
    spend(1, outcome=outcome)
    assert refused()


def test_calls_at_once_pass_the_budget_by_one_of_them_at_most(
    models: Scripted, probe: Prompt, settings: Settings
) -> None:
    settings.DAILY_BUDGET = 0.0015
    # Of a reply of at most 100 tokens: 0.001 USD, and nothing for the question.
    Price.objects.create(model="fake@scripted", input_per_million=0, output_per_million=10)
    models.says("probe", lambda _: Response(GOOD.text, seconds=0.5))

    def ask(place: int) -> None:
        with suppress(ModelFailure):
            llm(subject=f"test/{place}").ask(probe, Verdict, question=f"{place}?", hour="noon")
        close_old_connections()

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(models.server.ledger) <= 2
    assert ModelCall.objects.filter(outcome="budget_spent").count() >= 6
