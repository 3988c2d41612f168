"""Budget: what may be spent on models in a day, altogether and by one key or user.

What is counted are the calls in the journal that have a price. Calls that are on their way are
not in it yet: as many as run at once may go beyond the budget.
"""

from datetime import UTC, datetime, time
from decimal import Decimal

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet, Sum
from django.utils.timezone import now

from agents.llm.outcomes import ModelFailure, Outcome
from agents.models import Budget, ModelCall


def allow(owner: str, key: str = "") -> None:
    """Raise ModelFailure (BUDGET_SPENT) when today's money is spent; days are those of UTC.

    DAILY_BUDGET_PER_KEY holds for each key; what a user asks without one counts together. A Budget
    set in admin holds for all that is asked in the user's name.
    """
    try:
        _allow(owner, key)
    finally:
        connection.close()


def _allow(owner: str, key: str) -> None:
    today = ModelCall.objects.filter(created__gte=datetime.combine(now().date(), time(), UTC))
    if settings.DAILY_BUDGET and _sum(today) >= settings.DAILY_BUDGET:
        raise ModelFailure(
            Outcome.BUDGET_SPENT,
            f"Today's budget of {settings.DAILY_BUDGET:g} USD for models is spent; raise "
            "DAILY_BUDGET, or wait until midnight UTC.",
        )
    # Behind the slash stands for whom the key asked; all of them are spending its money.
    payer, slash, _ = owner.partition("/")
    if not payer:
        return
    theirs = today.filter(owner__startswith=payer + slash)
    own = _own(payer)
    most = own.usd_per_day if own else Decimal(str(settings.DAILY_BUDGET_PER_KEY))
    counted = theirs if own else theirs.filter(key=key)
    if most and _sum(counted) >= most:
        whose = payer if own or not key else f"key {key} of {payer}"
        raise ModelFailure(
            Outcome.BUDGET_SPENT,
            f"Today's budget of {most:f} USD for {whose} is spent; raise it under "
            "Budgets in admin or by DAILY_BUDGET_PER_KEY, or wait until midnight UTC.",
        )


def _own(payer: str) -> Budget | None:
    """Return the budget that admin gave a user."""
    named = payer.removeprefix("user:")
    return Budget.objects.filter(owner_id=int(named)).first() if named.isdigit() else None


def _sum(calls: "QuerySet[ModelCall]") -> Decimal:
    return calls.aggregate(spent=Sum("cost"))["spent"] or Decimal(0)
