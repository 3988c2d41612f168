"""Budget: what may be spent on models in a day, altogether and by one owner's keys."""

from datetime import UTC, datetime, time
from decimal import Decimal

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet, Sum
from django.utils.timezone import now

from agents.llm.outcomes import ModelFailure, Outcome
from agents.models import Budget, ModelCall


def allow(owner: str) -> None:
    """Raise ModelFailure (BUDGET_SPENT) when today's money is spent; days are those of UTC.

    Only what has a known price can be counted.
    """
    try:
        _allow(owner)
    finally:
        connection.close()


def _allow(owner: str) -> None:
    today = ModelCall.objects.filter(created__gte=datetime.combine(now().date(), time(), UTC))
    if settings.DAILY_BUDGET and _sum(today) >= settings.DAILY_BUDGET:
        raise ModelFailure(
            Outcome.BUDGET_SPENT,
            f"today's budget of {settings.DAILY_BUDGET} USD is spent (DAILY_BUDGET)",
        )
    most = _most(owner)
    if owner and most and _sum(today.filter(owner=owner)) >= most:
        raise ModelFailure(
            Outcome.BUDGET_SPENT, f"today's budget of {most} USD of {owner} is spent"
        )


def _most(owner: str) -> Decimal:
    named = owner.partition("/")[0].removeprefix("user:")
    own = Budget.objects.filter(owner_id=int(named)).first() if named.isdigit() else None
    return own.usd_per_day if own else Decimal(str(settings.DAILY_BUDGET_PER_KEY))


def _sum(calls: "QuerySet[ModelCall]") -> Decimal:
    return calls.aggregate(spent=Sum("cost"))["spent"] or Decimal(0)
