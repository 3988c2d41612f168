"""Notifications: staff are told, by webhook and e-mail, that a conversation waits for them.

What is to be sent is a row, written with the handover; it is sent afterwards, by a thread beside
the sweeper, at least once. Webhooks follow https://www.standardwebhooks.com: who receives them can
tell a repetition by its id, and by the signature that it comes from here.
"""

import base64
import hmac
import json
import logging
import threading
import time
from datetime import timedelta
from smtplib import SMTPException
from textwrap import shorten
from typing import Any

import httpx2
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import Error, connection, transaction
from django.utils.timezone import now

from conversations.models import Message, Notification
from knowledge.postgres_text import storable

log = logging.getLogger(__name__)

EVERY_SECONDS = 2.0
# Longer than sending takes: who died while at it is followed by another.
LEASE = timedelta(seconds=60)
TIMEOUT_SECONDS = 10.0
# After each attempt that failed; after the last one it is given up, which the admin shows.
PAUSES = tuple(timedelta(seconds=each) for each in (5, 30, 120, 600, 3600, 10800))
LONGEST_MESSAGE = 300
LONGEST_ERROR = 500
SUBJECT = "A conversation waits for a person"


class Undelivered(Exception):
    """The other side did not take it."""


def start() -> None:
    """Send what is due in a thread of this process, where staff are to be told at all."""
    if settings.HANDOVER_WEBHOOK or settings.HANDOVER_EMAIL:
        threading.Thread(target=run, name="notifications", daemon=True).start()


def run() -> None:
    """Send what is due until the process ends."""
    while True:
        try:
            deliver_due()
        except Error as error:
            log.warning("PostgreSQL is away: %s", error)
        connection.close()
        time.sleep(EVERY_SECONDS)


def deliver_due() -> int:
    """Send what is due; return how many attempts that took."""
    attempts = 0
    while row := _claimed():
        message = content(row)
        # Nothing is held while somebody else's server is asked.
        connection.close()
        try:
            _send(row, message)
        except (Undelivered, httpx2.HTTPError, httpx2.InvalidURL, SMTPException, OSError) as error:
            _note_failure(row, error)
        else:
            _attempt(row).update(sent=now(), due=None, error="")
        attempts += 1
    return attempts


def _claimed() -> Notification | None:
    """Return what has been due for longest, and let nobody else send it for a while."""
    with transaction.atomic():
        due = Notification.objects.select_for_update(skip_locked=True).filter(due__lte=now())
        row = due.order_by("due").first()
        if row:
            row.attempts, row.due = row.attempts + 1, now() + LEASE
            row.save()
    return row


def _attempt(row: Notification) -> Any:
    """Return the row, unless somebody else has tried it again meanwhile."""
    return Notification.objects.filter(pk=row.pk, attempts=row.attempts, sent=None)


def _note_failure(row: Notification, error: Exception) -> None:
    told = storable(f"{type(error).__name__}: {error}"[:LONGEST_ERROR])
    last = row.attempts > len(PAUSES)
    due = None if last else now() + PAUSES[row.attempts - 1]
    _attempt(row).update(due=due, error=told)
    log.warning("staff were not told of handover %s: %s", row.handover_id, told)


def content(row: Notification) -> dict[str, Any]:
    """Return what staff are told: which conversation, why, what was said last, and where it is."""
    handover = row.handover
    conversation = handover.conversation
    said = conversation.messages.filter(role=Message.Author.USER).order_by("created").last()
    return {
        "id": str(row.pk),
        "type": "handover.requested",
        "timestamp": handover.requested.isoformat(),
        "data": {
            "conversation_id": str(conversation.pk),
            "session_id": conversation.session,
            "user_id": conversation.user_id,
            "why": handover.why,
            "last_message": shorten(said.text, LONGEST_MESSAGE, placeholder="…") if said else "",
            # Not looked up: that would load the admin.
            "url": f"{settings.PUBLIC_URL}/admin/conversations/handover/{handover.pk}/change/",
        },
    }


def _send(row: Notification, message: dict[str, Any]) -> None:
    if row.channel == Notification.Channel.WEBHOOK:
        _post(str(row.pk), json.dumps(message, ensure_ascii=False).encode())
    else:
        _mail(str(row.pk), message["data"])


def _post(identity: str, body: bytes) -> None:
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Docent",
        "webhook-id": identity,
        "webhook-timestamp": stamp,
    }
    if settings.HANDOVER_WEBHOOK_KEY:
        headers["webhook-signature"] = signature(identity, stamp, body)
    response = httpx2.post(
        settings.HANDOVER_WEBHOOK, content=body, headers=headers, timeout=TIMEOUT_SECONDS
    )
    if not response.is_success:
        raise Undelivered(f"{response.status_code} {response.reason_phrase}")


def signature(identity: str, stamp: str, body: bytes) -> str:
    """Return `v1,` and the HMAC-SHA256 of id, time and body in base64."""
    signed = f"{identity}.{stamp}.".encode() + body
    digest = hmac.digest(settings.HANDOVER_WEBHOOK_KEY, signed, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


def _mail(identity: str, data: dict[str, str]) -> None:
    text = f"{data['last_message']}\n\nAnswer here: {data['url']}\n"
    # The same for each attempt: programs for mail show what has one id once.
    headers = {"Message-ID": f"<{identity}@docent>"}
    EmailMessage(SUBJECT, text, to=settings.HANDOVER_EMAIL, headers=headers).send()
