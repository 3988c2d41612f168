"""Pressure: refuses a turn when too many are under way, instead of queueing without end."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count, Q
from django.utils.timezone import now

from agents.names import Status
from conversations.errors import TooManyTurns
from conversations.models import Message

LOCK = 0x0D0CE29


def refuse_too_many(owner: User | None) -> int:
    """Return how many turns of this owner are under way.

    Raises TooManyTurns when all turns, or those of this owner, have reached their limit.

    Called in the transaction that begins the turn, which then holds a lock until it is committed:
    turns begin one after another, so none is counted too late. Turns past their deadline don't
    count, even if nobody has ended them.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    asked = Message.objects.filter(
        role=Message.Author.USER, turn__status=Status.RUNNING, turn__deadline__gte=now()
    )
    counts = asked.aggregate(
        all=Count("pk"), theirs=Count("pk", filter=Q(conversation__owner=owner))
    )
    if counts["theirs"] >= settings.MAX_TURNS_PER_KEY:
        raise TooManyTurns(
            f"No more than {settings.MAX_TURNS_PER_KEY:,} of your questions are answered at a "
            f"time. Try again in {TooManyTurns.retry_seconds} seconds."
        )
    if counts["all"] >= settings.MAX_TURNS:
        raise TooManyTurns(
            f"No more than {settings.MAX_TURNS:,} questions are answered at a time. "
            f"Try again in {TooManyTurns.retry_seconds} seconds."
        )
    return int(counts["theirs"])
