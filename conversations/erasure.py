"""Erasure: conversations are forgotten with all that belongs to them, which is counted."""

import logging
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils.timezone import now

from agents.llm import journal
from agents.llm.stops import stop_command
from agents.models import Envelope, Fault, ModelCall, Step, ToolRun
from agents.names import Status
from agents.steps import events
from agents.trace import tally
from conversations.handover import ring
from conversations.models import (
    Conversation,
    Ending,
    Feedback,
    Handover,
    Message,
    Notification,
)
from knowledge import versions

log = logging.getLogger(__name__)

# Conversations that are forgotten at one request: each takes a few milliseconds.
MOST = 500
# What goes with a conversation, and what a receipt calls it. Calls of models are emptied.
KINDS: dict[type[Model], str] = {
    Conversation: "conversations",
    Message: "messages",
    Envelope: "turns",
    Step: "steps",
    ModelCall: "model_calls",
    ToolRun: "tool_calls",
    Fault: "errors",
    Feedback: "feedback",
    Ending: "endings",
    Handover: "handovers",
    Notification: "notifications",
}
# What documents know of the turns that cited them.
RELIANCES = "cited_documents"
NOTHING = dict.fromkeys([*KINDS.values(), RELIANCES], 0)


def forget(
    conversation: Conversation, *, within: "QuerySet[Conversation] | None" = None
) -> Counter[str]:
    """Delete a conversation with its messages, its turns and their traces; return the receipt.

    The receipt has each of KINDS and RELIANCES with how many rows of it were deleted, and of calls
    of models emptied: none at all if the conversation was gone before, or is not one of `within`
    any more. Several are added up with `Counter.update`, which keeps those that are 0.

    Of calls the day, the payer, the model and what they cost stays: budgets count it. Refund cases
    are the customer's and stay, as do prices and budgets.

    A turn that is under way ends without a word, and what its agents bring later is dropped. Who
    follows is told. What an agent at work still publishes in Redis is gone an hour later.
    """
    rows = Conversation.objects.all() if within is None else within
    removed = Counter(NOTHING)
    with transaction.atomic():
        # Envelopes know their conversation by its id alone, so that nothing cascades to them.
        turns = Envelope.objects.filter(conversation_id=conversation.pk).order_by("pk")
        # The locks of `remember`, in its order; then no message can begin another turn.
        known = turns.only("status", "target_list", "result_list").select_for_update()
        list(known)
        if list(rows.select_for_update(of=("self",)).filter(pk=conversation.pk)):
            removed.update(_removed(conversation, list(known.all())))
    return removed


def _removed(conversation: Conversation, turns: list[Envelope]) -> Counter[str]:
    """Delete a conversation and its turns, all of them locked; return the receipt."""
    ids = [turn.pk for turn in turns]
    # What they came to, and what they cost, stays counted.
    tally.count_ended(ids)
    removed = Counter({RELIANCES: versions.forget_turns(ids)})
    removed[KINDS[ModelCall]] = journal.forget_turns(ids)
    for rows in (
        Envelope.objects.filter(pk__in=ids),
        Conversation.objects.filter(pk=conversation.pk),
    ):
        deleted = rows.delete()[1]
        removed.update({name: deleted.get(kind._meta.label, 0) for kind, name in KINDS.items()})
    ring(conversation.pk)
    transaction.on_commit(partial(_clear, turns), robust=True)
    return removed


@dataclass(frozen=True)
class Receipt:
    """What was forgotten at one request; `left` are conversations that are still there."""

    removed: dict[str, int]
    left: int = 0
    id: uuid.UUID = field(default_factory=uuid.uuid4)
    time: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        """Note it for the operator, without whom it is about."""
        log.info("receipt %s: %s", self.id, self.removed)


def forget_user(user_id: str, among: "QuerySet[Conversation]", *, most: int = MOST) -> Receipt:
    """Forget conversations that were held for a user: the oldest of those among these."""
    theirs = among.filter(user_id=user_id).order_by("created", "pk")
    removed = Counter(NOTHING)
    for conversation in theirs[:most]:
        removed.update(forget(conversation, within=among))
    return Receipt(dict(removed), left=theirs.count())


def _clear(turns: list[Envelope]) -> None:
    """Delete what was published of the turns, and tell who follows one that it ended."""
    commands: list[events.Command] = []
    for turn in turns:
        commands.append(("DEL", turn.target_list, turn.result_list))
        if turn.status == Status.RUNNING:
            told = {"turn": turn.pk, "status": "forgotten"}
            commands += events.event_commands(turn.target_list, "workflow_complete", **told)
            commands += events.event_commands(turn.result_list, "result", **told)
            commands.append(stop_command(turn.pk))
    if commands:
        events.send(commands)
