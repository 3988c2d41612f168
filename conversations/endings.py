"""Endings: how each turn ended, in one word, and the gaps that unanswered questions gather in."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils.timezone import now
from pgvector.django import HalfVectorField

from agents.attributes import Reason
from agents.models import Envelope, ModelCall
from agents.names import Role, Status
from agents.trace.usage import calls_of
from knowledge.identifiers import LOCAL_DIMENSIONS

# Begins the session of a conversation in which staff try something: what fails there is no gap.
TRIAL = "trial-"
# Who was asked back and does not reply has left.
PATIENCE = timedelta(minutes=30)
WORD = re.compile(r"[\W_]+")
LONGEST_QUESTION = 2000
UNSAFE = frozenset({Reason.HARMFUL_CONTENT, Reason.SYSTEM_ABUSE, Reason.INAPPROPRIATE})
FOREIGN = frozenset({Reason.OFF_TOPIC, Reason.OUT_OF_SCOPE, Reason.SCOPE_UNCLEAR})


class Kind(models.TextChoices):
    """How a turn ended."""

    ANSWERED = "answered", "answered"
    CLOSEST = "closest", "closest place only"
    DECLINED = "declined", "nothing in the documents"
    ASKED_BACK = "asked_back", "asked back"
    FALLBACK = "fallback", "no route"
    OUT_OF_SCOPE = "out_of_scope", "out of scope"
    REFUSED = "refused", "refused as unsafe"
    SMALL_TALK = "small_talk", "small talk or command"
    WITH_STAFF = "with_staff", "with staff"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


UNANSWERED = (Kind.CLOSEST, Kind.DECLINED, Kind.ASKED_BACK, Kind.FALLBACK)


class Gap(models.Model):
    """Unanswered questions that ask for the same; it holds no words of its own."""

    class Settled(models.TextChoices):
        """What staff said of it."""

        DISMISSED = "dismissed", "dismissed"
        ANSWERED = "answered", "answered by now"

    # Whose vector others are compared with; None: the oldest takes its place.
    leader = models.OneToOneField(
        "conversations.Ending", on_delete=models.SET_NULL, null=True, related_name="leads"
    )
    settled = models.CharField(max_length=10, choices=Settled, blank=True)
    # What was asked after this time opens it again.
    settled_at = models.DateTimeField(null=True, blank=True)
    settled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    # The turn in which staff asked again.
    tried = models.ForeignKey(
        Envelope, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created = models.DateTimeField(default=now)

    class Meta:
        verbose_name, verbose_name_plural = "unanswered question", "unanswered questions"
        ordering = ("-created",)

    def __str__(self) -> str:
        return self.leader.question if self.leader else "Unanswered question"


class Ending(models.Model):
    """How a turn ended, and what was asked in it."""

    turn = models.OneToOneField(
        Envelope, on_delete=models.CASCADE, primary_key=True, related_name="ending"
    )
    conversation = models.ForeignKey(
        "conversations.Conversation", on_delete=models.CASCADE, related_name="endings",
        db_index=False,
    )  # fmt: skip
    kind = models.CharField(max_length=12, choices=Kind)
    route = models.CharField(max_length=16, blank=True)
    confidence = models.FloatField(null=True, blank=True)  # of an answer, 0 to 1
    language = models.CharField(max_length=8, blank=True)
    question = models.TextField(blank=True)  # as it stands alone
    words = models.CharField(max_length=32)  # digest of the words of the question
    # Not answered, or not well: by its kind or by a thumb down, and nothing made up for it since.
    is_missed = models.BooleanField(default=False)
    # Of the question, once it was compared with others.
    embedding = HalfVectorField(dimensions=LOCAL_DIMENSIONS, null=True)
    gap = models.ForeignKey(
        Gap, on_delete=models.SET_NULL, null=True, blank=True, related_name="endings",
        db_index=False,
    )  # fmt: skip
    created = models.DateTimeField(default=now)
    # Since the message was taken: to the end, and until the answer began to appear.
    seconds = models.FloatField(null=True, blank=True)
    first_word = models.FloatField(null=True, blank=True)
    # In US dollars, as far as it is known.
    cost = models.DecimalField(max_digits=12, decimal_places=6, default=0, db_default=0)

    class Meta:
        ordering = ("-created",)
        indexes = (
            # All that the home of the admin asks for: it reads no row of months of turns.
            models.Index(
                fields=("created",),
                include=("kind", "seconds", "first_word", "cost", "conversation"),
                name="ending_figures",
            ),
            models.Index(fields=("conversation", "-created"), name="ending_by_conversation"),
            models.Index(fields=("gap", "-created"), name="ending_by_gap"),
            models.Index(fields=("words",), name="ending_by_words", condition=Q(gap__isnull=False)),
            models.Index(
                fields=("created",),
                name="ending_to_gather",
                condition=Q(is_missed=True, gap__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.question[:60]}"


def kind_of(status: str, payload: dict[str, Any]) -> Kind:
    """Return how a turn ended."""
    reason, stage = payload.get("clarification_reason"), payload.get("stage")
    match status:
        case Status.FAILED | Status.EXPIRED:
            return Kind.FAILED
        case Status.CANCELLED:
            return Kind.CANCELLED
        case Status.WITH_STAFF:
            return Kind.WITH_STAFF
    if payload.get("small_talk") or payload.get("clarification_result") == "exit":
        return Kind.SMALL_TALK
    if stage == Role.COMMAND:
        return Kind.SMALL_TALK
    if stage == Role.CLARIFICATION:
        return _asked(reason, is_open=status == Status.AWAITING_USER)
    if stage == Role.FALLBACK:
        return Kind.FALLBACK
    is_closest = payload.get("answer_form") == "closest"
    return Kind.CLOSEST if is_closest else Kind.ANSWERED


def _asked(reason: str | None, *, is_open: bool) -> Kind:
    if reason in UNSAFE:
        return Kind.REFUSED
    if reason in FOREIGN:
        return Kind.OUT_OF_SCOPE
    if reason == Reason.INSUFFICIENT_CONTEXT or not is_open:
        return Kind.DECLINED
    return Kind.ASKED_BACK


def ending_of(envelope: Envelope, at: datetime, *, is_trial: bool) -> Ending:
    """Return how a turn ended, as it will be stored; `at` is when."""
    payload = envelope.payload
    calls = list(calls_of(envelope.pk).defer("request", "reply", "tool_calls"))
    kind = kind_of(envelope.status, payload)
    question = str(payload.get("canonical_question") or payload.get("text") or "")
    answered = kind in {Kind.ANSWERED, Kind.CLOSEST}
    return Ending(
        turn=envelope,
        conversation_id=envelope.conversation_id,
        kind=kind,
        route=payload.get("route") or "",
        confidence=payload.get("generation_confidence") if answered else None,
        language=(payload.get("language") or "")[:8],
        question=question[:LONGEST_QUESTION],
        words=words_of(question),
        is_missed=kind in UNANSWERED and not is_trial,
        created=envelope.create_ts,
        seconds=max(0.0, (at - envelope.create_ts).total_seconds()),
        first_word=max(0.0, (_beginning(calls, at) - envelope.create_ts).total_seconds()),
        cost=sum(call.cost or 0 for call in calls),
    )


def _beginning(calls: Iterable[ModelCall], end: datetime) -> datetime:
    """Return when an answer began to appear: while a model wrote it, or at once at the end."""
    begun = [
        call.created - timedelta(seconds=call.seconds - call.first_token_seconds)
        for call in calls
        if call.role == Role.RESPONSE and call.first_token_seconds is not None
    ]
    return min([*begun, end])


def words_of(question: str) -> str:
    """Return a digest that is the same for the same words, however they are written."""
    plain = unicodedata.normalize("NFKC", question).casefold()
    words = " ".join(WORD.sub(" ", plain).split())
    return blake2b(words.encode("utf-8", "replace"), digest_size=16).hexdigest()


def record(envelope: Envelope, session: str) -> None:
    """Note how a turn ended, in the transaction that ends it; `session` is its conversation's."""
    ending = ending_of(envelope, now(), is_trial=session.startswith(TRIAL))
    Ending.objects.bulk_create([ending], ignore_conflicts=True)
    if envelope.payload.get("context_type") == "clarification" and ending.kind == Kind.ANSWERED:
        # What was asked back about is answered now.
        asked = Ending.objects.filter(
            conversation=envelope.conversation_id, is_missed=True, created__lt=ending.created
        )
        asked.filter(kind__in=(Kind.ASKED_BACK, Kind.DECLINED)).update(is_missed=False)


@receiver(post_save, sender="conversations.Feedback")
def hear_rating(sender: object, instance: Any, **_: Any) -> None:
    """Count an answer with a thumb down among those that are none, until the thumb goes up."""
    rows = Ending.objects.filter(turn=instance.turn_id)
    if instance.rating == "down":
        rows.update(is_missed=True)
    else:
        rows.exclude(kind__in=UNANSWERED).update(is_missed=False)


def missed(path: str = "") -> Q:
    """Return the condition of endings that count as unanswered; `path` leads to them."""
    waits = Q(**{f"{path}kind": Kind.ASKED_BACK, f"{path}created__gt": now() - PATIENCE})
    return Q(**{f"{path}is_missed": True}) & ~waits
