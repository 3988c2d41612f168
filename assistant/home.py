"""Home of the admin: what needs somebody now, and how turns went of late."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.utils.timezone import now

from agents.trace.charts import NONE, Chart, Series
from assistant.needs import needs
from conversations.endings import Kind
from conversations.models import Assistant
from knowledge.models import Collection

OUTCOMES: dict[str, tuple[Kind, ...]] = {
    "answered": (Kind.ANSWERED,),
    "closest place only": (Kind.CLOSEST,),
    "asked back": (Kind.ASKED_BACK,),
    "declined": (Kind.DECLINED, Kind.FALLBACK, Kind.OUT_OF_SCOPE, Kind.REFUSED),
    "failed": (Kind.FAILED,),
    "others": (Kind.SMALL_TALK, Kind.WITH_STAFF, Kind.CANCELLED),
}
# Whose times count: what was cut short, or handed over, took no time that says anything.
REPLIED = (Kind.ANSWERED, Kind.CLOSEST, Kind.ASKED_BACK, Kind.DECLINED)
AMONG = {
    "assistant": "SELECT id FROM conversations_conversation WHERE assistant = %(assistant)s",
    "collection": "SELECT conversation_id FROM conversations_conversation_collections "
    "JOIN knowledge_collection AS body ON body.id = collection_id WHERE name = %(collection)s",
}
# Rows: the time (None: all of it), turns by outcome, median and 95th percentile to the end and to
# the first word, and cost. Reads the index `ending_figures` alone.
ENDINGS = """
    SELECT at, {counts},
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY seconds)
               FILTER (WHERE kind = ANY(%(replied)s)),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_word)
               FILTER (WHERE kind = ANY(%(replied)s)),
           coalesce(sum(cost), 0)
      FROM (SELECT date_bin(%(step)s, created, '2000-01-01 00:00+00') AS at,
                   kind, seconds, first_word, cost
              FROM conversations_ending WHERE created >= %(since)s {among}) AS ending
     GROUP BY GROUPING SETS ((at), ())"""
FEEDBACK = """
    SELECT date_bin(%(step)s, updated, '2000-01-01 00:00+00'),
           count(*) FILTER (WHERE rating = 'up'), count(*) FILTER (WHERE rating = 'down')
      FROM conversations_feedback WHERE updated >= %(since)s {among}
     GROUP BY 1"""


@dataclass(frozen=True)
class Range:
    """How far back is looked, in steps of which length, and how their times are written."""

    title: str
    span: timedelta
    step: timedelta
    form: str


RANGES = {
    "24h": Range("24 hours", timedelta(hours=24), timedelta(hours=1), "%H:%M"),
    "7d": Range("7 days", timedelta(days=7), timedelta(hours=6), "%d %b %H:%M"),
    "30d": Range("30 days", timedelta(days=30), timedelta(days=1), "%d %b"),
    "90d": Range("90 days", timedelta(days=90), timedelta(days=1), "%d %b"),
}
USUAL = "7d"


@dataclass(frozen=True)
class Figures:
    """What turns came to in one step of time, or in all of it."""

    counts: dict[str, int]
    seconds: Sequence[float | None] = (None, None)  # median and 95th percentile to the end
    first_word: Sequence[float | None] = (None, None)
    cost: float = 0.0
    up: int = 0
    down: int = 0


NOTHING = Figures(dict.fromkeys(OUTCOMES, 0))


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add to the context of the index what its template shows to who asks."""
    context |= {"needs": list(needs(request.user))}
    if request.user.has_perm("conversations.view_conversation"):
        context |= {
            "home": figures(
                request.GET.get("range", ""),
                request.GET.get("assistant", ""),
                request.GET.get("collection", ""),
                with_cost=request.user.has_perm("agents.view_modelcall"),
            ),
            "ranges": RANGES.items(),
            "assistants": Assistant.objects.order_by("name").values_list("name", flat=True),
            "collections": Collection.objects.order_by("name").values_list("name", flat=True),
        }
    return context


def figures(name: str, assistant: str, collection: str, *, with_cost: bool) -> dict[str, Any]:
    """Return the tiles and charts of a range (an unknown one: USUAL), of one assistant or body."""
    name = name if name in RANGES else USUAL
    chosen = {"assistant": assistant, "collection": collection}
    chosen = {key: value.replace("\0", "") for key, value in chosen.items() if value}
    whole, steps = measured(RANGES[name], chosen)
    charts = _charts(RANGES[name], steps)
    return {
        "range": name,
        "tiles": [*_tiles(whole, with_cost=with_cost)],
        "charts": charts if with_cost else [each for each in charts if each.unit != "USD"],
    } | chosen


def measured(over: Range, chosen: dict[str, str]) -> tuple[Figures, dict[datetime, Figures]]:
    """Return the figures of a range, and of each of its steps, also of those without a turn."""
    moment = now()
    last = moment - (moment - datetime(2000, 1, 1, tzinfo=UTC)) % over.step
    times = [last - over.step * back for back in reversed(range(over.span // over.step))]
    values = {"step": over.step, "since": times[0], "replied": [*REPLIED]} | chosen
    values |= {f"kinds_{place}": [*kinds] for place, kinds in enumerate(OUTCOMES.values())}
    among = "".join(f" AND conversation_id IN ({AMONG[key]})" for key in chosen)
    counts = ", ".join(
        f"count(*) FILTER (WHERE kind = ANY(%(kinds_{place})s))" for place in range(len(OUTCOMES))
    )
    rated = {at: (up, down) for at, up, down in _rows(FEEDBACK.format(among=_rated(among)), values)}
    found: dict[datetime | None, Figures] = {}
    for at, *turns, seconds, first_word, cost in _rows(
        ENDINGS.format(counts=counts, among=among), values
    ):
        up, down = rated.get(at, (0, 0)) if at else _added(rated.values())
        found[at] = Figures(
            dict(zip(OUTCOMES, turns, strict=True)),
            seconds or (None, None),
            first_word or (None, None),
            float(cost),
            up,
            down,
        )
    return found.get(None, NOTHING), {at: found.get(at, NOTHING) for at in times}


def _added(rated: Iterable[tuple[int, int]]) -> tuple[int, int]:
    return sum(up for up, _ in rated), sum(down for _, down in rated)


def _rated(among: str) -> str:
    """Return the condition of feedback on the turns of some conversations."""
    turns = f"SELECT turn_id FROM conversations_ending WHERE true{among}"  # noqa: S608 constants
    return f" AND turn_id IN ({turns})" if among else ""


def _rows(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _charts(over: Range, steps: dict[datetime, Figures]) -> list[Chart]:
    times = [f"{at:{over.form}}" for at in steps]
    each = list(steps.values())
    return [
        Chart(
            "How they ended",
            times,
            [
                Series(name, f"outcome-{name.split()[0]}", [step.counts[name] for step in each])
                for name in OUTCOMES
            ],
        ),
        _times("Seconds to the answer", times, [step.seconds for step in each]),
        _times("Seconds to the first word", times, [step.first_word for step in each]),
        Chart("Cost", times, [Series("USD", "first", [step.cost for step in each])], "USD", 2),
        Chart(
            "Feedback",
            times,
            [
                Series("thumbs up", "outcome-answered", [step.up for step in each]),
                Series("thumbs down", "outcome-failed", [step.down for step in each]),
            ],
        ),
    ]


def _times(title: str, times: list[str], spreads: list[Sequence[float | None]]) -> Chart:
    half = Series("half within", "first", [spread[0] for spread in spreads])
    most = Series("95 % within", "second", [spread[1] for spread in spreads])
    return Chart(title, times, [half, most], "s", digits=1, lines=True)


def _tiles(whole: Figures, *, with_cost: bool) -> Iterator[tuple[str, str, str]]:
    turns = sum(whole.counts.values())
    yield "Turns", f"{turns:,}", ""
    for name in ("answered", "asked back", "declined", "failed"):
        count = whole.counts[name]
        yield name.capitalize(), f"{count:,}", _share(count, turns)
    if with_cost:
        yield (
            "Cost",
            f"{whole.cost:,.2f}\N{NO-BREAK SPACE}USD",
            f"{whole.cost / turns:.4f} a turn" if turns else "",
        )
    for title, (half, most) in (
        ("To the answer", whole.seconds),
        ("To the first word", whole.first_word),
    ):
        yield title, _seconds(half), f"95 % within {_seconds(most)}" if most is not None else ""
    thumbs = whole.up + whole.down
    yield "Thumbs up", _share(whole.up, thumbs) or NONE, f"of {thumbs:,}" if thumbs else ""


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}\N{NO-BREAK SPACE}%" if whole else ""


def _seconds(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}\N{NO-BREAK SPACE}s"
