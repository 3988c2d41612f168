"""Expiry: conversations in which nothing happened for long are forgotten, by and by.

A thread beside the sweeper does it. Any number may: each conversation is looked at again under its
lock, and what is gone is gone.
"""

import logging
import threading
import time
from collections import Counter
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error, connection
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.timezone import now

from agents.billing.models import RefundCase
from agents.models import Envelope, Fault
from agents.names import Status
from conversations.case_messages import openings
from conversations.erasure import KINDS, forget
from conversations.models import Conversation

log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
# At a time, so that a first run over years of conversations disturbs nobody.
BATCH = 100
# Whoever is waited for: an agent, or staff.
BUSY = (Conversation.Status.RUNNING, Conversation.Status.WITH_STAFF)


def start() -> None:
    """Forget what has expired in a thread of this process, where conversations expire at all."""
    if settings.CONVERSATION_TTL_DAYS:
        threading.Thread(target=run, name="expiry", daemon=True).start()


def run() -> None:
    """Forget what has expired until the process ends."""
    while True:
        try:
            forget_expired()
        except Error as error:
            log.warning("PostgreSQL is away: %s", error)
        connection.close()
        time.sleep(EVERY_SECONDS)


def forget_expired() -> Counter[str]:
    """Forget a batch of what has expired, the oldest first; return the receipt.

    Errors of no turn, which may quote what was sent, are deleted after the same time.
    """
    before = now() - timedelta(days=settings.CONVERSATION_TTL_DAYS)
    removed: Counter[str] = Counter()
    for conversation in expired(before).order_by("updated")[:BATCH]:
        try:
            removed.update(forget(conversation, within=expired(before)))
        except Error:
            # One that cannot be forgotten must not keep the others.
            log.exception("conversation %s has expired and could not be forgotten", conversation.pk)
            connection.close()
    stray = Fault.objects.filter(envelope=None, created__lt=before).values("pk")[:BATCH]
    removed[KINDS[Fault]] += Fault.objects.filter(pk__in=stray).delete()[0]
    if any(removed.values()):
        log.info("expired: %s", dict(removed))
    return removed


def expired(before: datetime) -> "QuerySet[Conversation]":
    """Return the conversations in which nothing happened since then, and nobody is waited for.

    That is a turn under way, staff, or the decision about a refund case that was opened in it,
    which will be told in it. Of cases in a system of one's own nothing is told, or known, here.
    """
    cases = openings(RefundCase.objects.filter(status=RefundCase.Status.OPENED))
    undecided = cases.filter(envelope__conversation_id=OuterRef("pk"))
    under_way = Envelope.objects.filter(conversation_id=OuterRef("pk"), status=Status.RUNNING)
    rows = Conversation.objects.filter(updated__lt=before).exclude(status__in=BUSY)
    return rows.exclude(Exists(undecided)).exclude(Exists(under_way))
