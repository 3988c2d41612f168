"""Usage: what language models were asked and what it cost, by turn, conversation, day and more."""

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db.models import Aggregate, Case, Count, F, FloatField, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, Left, TruncDate
from knox.models import AuthToken

from agents.llm.outcomes import OUTAGES, UNHEARD, Outcome
from agents.models import ModelCall

# Asked to show how a turn would go now: of the turn, but no part of what it cost.
REPLAY = "replay/"
# No provider bills for these: nobody worked on the question.
FREE = OUTAGES | {Outcome.OUT_OF_TIME, Outcome.REJECTED}
UNPRICED = Q(cost=None) & ~Q(outcome__in=FREE)
# They stand with the most they can have cost.
POSSIBLY_PAID = Q(outcome__in=UNHEARD)
# Some providers bill for the part of a reply they sent before it broke off; none says so.
BROKEN = Q(attempts__contains=[{"outcome": Outcome.CUT_OFF.value}])
MOST_ROWS = 100
MADE = Q(cached_from=None)
PARTS: dict[str, Any] = {
    "day": TruncDate("created", tzinfo=UTC),
    "role": F("role"),
    "model": F("model"),
    "key": F("key"),
    "conversation": F("envelope__conversation_id"),
    # Visitors of the chat page ask each in a name of their own; nobody wants a row for each.
    "owner": Case(When(owner__startswith="local/", then=Value("local/")), default=F("owner")),
}


class Percentile(Aggregate):
    """The value that a `share` of all values does not exceed, interpolated.

    Several shares, as an array of SQL, cost as much as one.
    """

    function = "PERCENTILE_CONT"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


SUMS: dict[str, Any] = {
    # Of what the index holds, so that no row has to be read.
    "model_calls": Count("created", filter=MADE),
    "cached_calls": Count("created", filter=~MADE),
    "input_tokens": Coalesce(Sum("input_tokens"), 0),
    "output_tokens": Coalesce(Sum("output_tokens"), 0),
    "priced": Sum("cost"),
    "unpriced": Count("created", filter=UNPRICED),
}
FIGURES: dict[str, Any] = SUMS | {
    "failed_calls": Count("created", filter=~Q(outcome__in=(Outcome.OK, Outcome.SENT))),
    "possibly_paid_calls": Count("created", filter=POSSIBLY_PAID),
    "spread": Percentile(
        "seconds",
        share="ARRAY[0.5, 0.95]",
        filter=MADE & Q(outcome=Outcome.OK),
        output_field=ArrayField(FloatField()),
    ),
}


def usage_of_turn(envelope_id: uuid.UUID) -> dict[str, Any]:
    """Return what a turn asked of models (see `usage_of_calls`)."""
    return usage_of_calls(calls_of(envelope_id))


def calls_of(envelope_id: uuid.UUID) -> "QuerySet[ModelCall]":
    """Return the calls of a turn, in their order, those of its replays left out."""
    return ModelCall.objects.filter(envelope=envelope_id).exclude(subject__startswith=REPLAY)


def usage_of_calls(calls: "QuerySet[ModelCall]") -> dict[str, Any]:
    """Return calls made and calls spared by an earlier reply, tokens, and cost in US dollars.

    `cost` is None and `cost_known` False when the price of one of them is not known; `cost_known`
    is False, too, when an attempt broke off that the provider may bill for beside the `cost`, and
    when nothing was heard of a call: `cost` holds the most it can have come to.
    """
    sums = calls.aggregate(**SUMS, doubtful=Count("pk", filter=BROKEN | POSSIBLY_PAID))
    priced, unpriced, doubtful = (sums.pop(name) for name in ("priced", "unpriced", "doubtful"))
    known = not (unpriced or doubtful)
    return sums | {"cost": None if unpriced else dollars(priced), "cost_known": known}


def dollars(amount: Decimal | None) -> float:
    """Return an amount as a JSON number."""
    return float(amount or 0)


def _calls_between(since: date, until: date) -> "QuerySet[ModelCall]":
    """Return the calls from one day to another, both included; days are those of UTC."""
    end = datetime.combine(until, time(), UTC) + timedelta(days=1)
    return ModelCall.objects.filter(
        created__gte=datetime.combine(since, time(), UTC), created__lt=end
    )


def figures(since: date, until: date, by: str) -> dict[str, Any]:
    """Return `{from, to, by, total, rows}` for `by` in PARTS.

    A row has `name` (the day, role, model, key, conversation or owner), `id`, calls, tokens, `cost`
    (None when some of it is not known), `priced_cost`, `unpriced_calls`, `possibly_paid_calls` (on
    their way, or lost with their worker; their cost is the most they can come to), and the median
    and the 95th percentile of the seconds a reply took. Days come in order, everything else by what
    it cost, the MOST_ROWS that cost most.
    """
    calls = _calls_between(since, until)
    # Without the ordering of the table, by which it would be grouped as well.
    groups: Any = calls.order_by().values(part=PARTS[by]).annotate(**FIGURES)
    dearest = groups.order_by(F("priced").desc(nulls_last=True), "part")
    rows = list(groups.order_by("part") if by == "day" else dearest[:MOST_ROWS])
    labels = NAMES.get(by, _itself)({row["part"] for row in rows})
    return {
        "from": since,
        "to": until,
        "by": by,
        "total": {"name": "total", "id": ""} | _row(calls.aggregate(**FIGURES)),
        "rows": [
            {"name": labels[row["part"]], "id": str(row["part"] or "")} | _row(row) for row in rows
        ],
    }


def _row(sums: dict[str, Any]) -> dict[str, Any]:
    row = {name: value for name, value in sums.items() if name != "part"}
    priced, unpriced = dollars(row.pop("priced")), row.pop("unpriced")
    half, most = row.pop("spread") or (None, None)
    return row | {
        "p50_seconds": half,
        "p95_seconds": most,
        "cost": None if unpriced else priced,
        "priced_cost": priced,
        "unpriced_calls": unpriced,
    }


def _itself(parts: set[Any]) -> dict[Any, str]:
    return {part: str(part) for part in parts}


def _key_names(keys: set[str]) -> dict[str, str]:
    """Return how each key is called: by whom it is for, and how it begins."""
    known = AuthToken.objects.annotate(short=Left("digest", 12)).filter(short__in=keys)
    names = {
        key.short: f"{key.user.get_username()}, {key.token_key}"
        for key in known.select_related("user")
    }
    return {key: names.get(key, f"revoked: {key}") if key else "without a key" for key in keys}


def _talk_names(talks: set[Any]) -> dict[Any, str]:
    return {talk: str(talk) if talk else "no conversation: documents" for talk in talks}


def _owner_names(owners: set[str]) -> dict[str, str]:
    """Return how each owner of calls is called: the user of the key, and for whom it asked."""
    ids = {owner.partition("/")[0].removeprefix("user:") for owner in owners}
    users = User.objects.in_bulk([int(user_id) for user_id in ids if user_id.isdigit()])
    return {owner: _owner_name(owner, users) for owner in owners}


def _owner_name(owner: str, users: dict[int, User]) -> str:
    if not owner:
        return "nobody: documents"
    holder, _, person = owner.partition("/")
    user_id = holder.removeprefix("user:")
    if user_id.isdigit() and int(user_id) in users:
        holder = users[int(user_id)].get_username()
    return f"{holder}, for {person}" if person else holder


NAMES: dict[str, Callable[[set[Any]], dict[Any, str]]] = {
    "owner": _owner_names,
    "key": _key_names,
    "conversation": _talk_names,
}
