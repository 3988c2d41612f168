"""Gaps: unanswered questions brought together by what they ask, and what staff do about them.

A turn that ends unanswered notes it in the transaction that ends it (`conversations/endings.py`).
What asks for the same is found later, by a worker of the ingest queue: it has the embedding model,
and nobody waits for it.
"""

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from celery import current_app, shared_task
from django.contrib.auth.models import User
from django.contrib.postgres.aggregates import ArrayAgg
from django.db import Error, connection, transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet
from django.utils.timezone import now
from kombu.exceptions import OperationalError
from pgvector import HalfVector
from pgvector.django import CosineDistance

from agents.models import Envelope
from agents.names import Status
from conversations.endings import TRIAL, Ending, Gap, ending_of, missed
from conversations.models import Conversation
from conversations.services import ANY, Asker, Filters, ask
from knowledge import embedding
from knowledge.identifiers import INGEST_QUEUE

log = logging.getLogger(__name__)

TASK = "conversations.gaps"
EVERY_SECONDS = 20.0
BATCH = 200  # questions, or turns
LOCK = 0x0D0CE31
# The least cosine of a question with the first one of a gap that it joins. Of 1,000 messages of
# customers with 27 wishes (Bitext's sample) 361 gaps come about, and 94 of 100 messages have the
# wish that most of their gap have; with .8 it is 97 of 100 in 465, with .7 92 in 286.
NEAR = 0.75


def start() -> None:
    """Have questions gathered, by a thread of this process that rings for the worker."""
    threading.Thread(target=run, name="gaps", daemon=True).start()


def run() -> None:
    """Ring whenever there is something to gather, until the process ends."""
    is_complete = False
    while True:
        try:
            # Turns that ended before endings were noted: once there are none left, there are none.
            is_complete = is_complete or not backfill(BATCH)
            if pending().exists():
                ring()
        except Error as error:
            log.warning("PostgreSQL is away: %s", error)
        connection.close()
        time.sleep(EVERY_SECONDS if is_complete else 1)


def ring() -> None:
    """Tell the worker that questions wait; a bell nobody hears is rung again."""
    try:
        current_app.send_task(TASK, queue=INGEST_QUEUE, expires=EVERY_SECONDS)
    except OperationalError as error:
        log.warning("Redis is away, questions wait to be gathered: %s", error)


@shared_task(name=TASK)
def gather_all() -> None:
    """Gather until nothing is left, unless another worker is at it."""
    while gather():
        pass


def backfill(most: int) -> int:
    """Note how turns ended that ended before this was noted; return how many, at most `most`."""
    known, talks = Ending.objects.filter(turn=OuterRef("pk")), Conversation.objects.order_by()
    turns = Envelope.objects.exclude(status=Status.RUNNING).filter(
        ~Exists(known), Exists(talks.filter(pk=OuterRef("conversation_id")))
    )
    rows = [
        ending_of(turn, turn.update_ts, is_trial=False)
        for turn in turns.order_by("create_ts")[:most]
    ]
    Ending.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def pending() -> QuerySet[Ending]:
    """Return the unanswered questions that are in no gap yet."""
    return Ending.objects.filter(is_missed=True, gap=None)


@contextmanager
def sole() -> Iterator[bool]:
    """Hold the lock of who gathers; yields False when another holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        is_held = bool(cursor.fetchone()[0])
        try:
            yield is_held
        finally:
            if is_held:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def gather() -> int:
    """Put a batch of unanswered questions into gaps; return how many. May be done twice.

    The same words first, else the gap whose first question is nearest, else a new one. Raises
    EmbeddingUnavailable.
    """
    with sole() as is_sole:
        if not is_sole:
            return 0
        tidy()
        batch = list(pending().order_by("created")[:BATCH])
        vectors = vectors_of(batch)
        for ending in batch:
            with transaction.atomic():
                put(ending, vectors.get(ending.words))
        return len(batch)


def tidy() -> None:
    """Delete gaps whose questions were all forgotten; elsewhere the oldest that is left leads."""
    Gap.objects.filter(endings=None).delete()
    for gap in Gap.objects.filter(leader=None):
        gap.leader = gap.endings.exclude(embedding=None).order_by("created").first()
        gap.save(update_fields=["leader"])


def vectors_of(endings: Sequence[Ending]) -> dict[str, HalfVector]:
    """Return words → vector, for those of the questions that nobody asked in these words."""
    words = {each.words: each.question for each in endings}
    known = Ending.objects.filter(words__in=words, gap__isnull=False, embedding__isnull=False)
    new = [each for each in words if each not in set(known.values_list("words", flat=True))]
    if not new:
        return {}
    vectors = embedding.encode([words[each] for each in new])
    return {each: HalfVector(vector) for each, vector in zip(new, vectors, strict=True)}


def put(ending: Ending, vector: HalfVector | None) -> None:
    """Put a question into its gap, in the caller's transaction."""
    same = Ending.objects.filter(words=ending.words, gap__isnull=False, embedding__isnull=False)
    twin = same.first()
    if twin is not None:
        ending.gap, ending.embedding = twin.gap, twin.embedding
    elif vector is not None:
        ending.embedding = vector
        ending.gap = nearest(vector) or Gap.objects.create(leader=ending)
    # It may have been forgotten meanwhile.
    values = {"gap": ending.gap, "embedding": ending.embedding}
    Ending.objects.filter(pk=ending.pk).update(**values)


def nearest(vector: HalfVector) -> Gap | None:
    """Return the gap whose first question is nearest, if it is near enough."""
    leaders = Ending.objects.filter(leads__isnull=False).annotate(
        distance=CosineDistance("embedding", vector)
    )
    best = leaders.select_related("leads").order_by("distance").first()
    return best.leads if best is not None and 1 - best.distance >= NEAR else None


def with_questions(gaps: QuerySet[Gap]) -> QuerySet[Gap]:
    """Add of each gap how many questions it holds, when the last was asked, and what they are.

    Those that hold none any more are left out. `is_open`: not settled, or asked again since.
    """
    counted = missed("endings__")
    return gaps.annotate(
        count=Count("endings", filter=counted),
        last_seen=Max("endings__created", filter=counted),
        languages=ArrayAgg("endings__language", filter=counted, distinct=True),
        kinds=ArrayAgg("endings__kind", filter=counted, distinct=True),
    ).filter(count__gt=0)


OPEN = Q(settled_at=None) | Q(last_seen__gt=F("settled_at"))


def settle(gaps: QuerySet[Gap], by: User, how: Gap.Settled) -> int:
    """Put gaps aside until somebody asks again; return how many."""
    return gaps.order_by().update(settled=how, settled_at=now(), settled_by=by)


def collections_of(gap: Gap) -> list[str]:
    """Return the names of the collections that were asked last; none: all."""
    latest = gap.endings.select_related("turn").order_by("-created").first()
    return list(latest.turn.memory.get("collections", ())) if latest else []


def ask_again(gap: Gap, by: User) -> Envelope:
    """Ask what a gap asks in a conversation of somebody of staff. Raises a ConversationError."""
    turn = trial(str(gap), by, collections_of(gap))
    Gap.objects.filter(pk=gap.pk).update(tried=turn)
    return turn


def trial(
    question: str, by: User, collections: Sequence[str] = (), filters: Filters = ANY
) -> Envelope:
    """Ask on behalf of staff, in a conversation of its own. Raises a ConversationError."""
    session = f"{TRIAL}{uuid.uuid4()}"
    return ask(question, Asker(by), session=session, collections=collections, filters=filters)
