"""Erasure: a conversation is forgotten with all that belongs to it, which is counted."""

from collections import Counter
from functools import partial

from django.db import transaction
from django.db.models import Model

from agents.llm.stops import stop_command
from agents.models import Envelope, Fault, ModelCall, Step, ToolRun
from agents.names import Status
from agents.steps import events
from agents.trace import tally
from conversations.handover import ring
from conversations.models import Conversation, Feedback, Handover, Message, Notification
from knowledge import versions

# What is deleted with a conversation, and what a receipt calls it.
KINDS: dict[type[Model], str] = {
    Conversation: "conversations",
    Message: "messages",
    Envelope: "turns",
    Step: "steps",
    ModelCall: "model_calls",
    ToolRun: "tool_calls",
    Fault: "errors",
    Feedback: "feedback",
    Handover: "handovers",
    Notification: "notifications",
}
# What documents know of the turns that cited them.
RELIANCES = "cited_documents"


def forget(conversation: Conversation) -> Counter[str]:
    """Delete a conversation with its messages, its turns and their traces; return the receipt.

    The receipt has each of KINDS and RELIANCES with how many rows of it the database deleted: none
    at all if the conversation was gone before. Several are added up with `Counter.update`, which
    keeps those that are 0. Refund cases are the customer's and stay, as do prices and budgets.

    A turn that is under way ends without a word, and what its agents bring later is dropped. Who
    follows is told. What an agent at work still publishes in Redis is gone an hour later.
    """
    deleted: Counter[str] = Counter()
    with transaction.atomic():
        # Envelopes know their conversation by its id alone, so that nothing cascades to them.
        turns = Envelope.objects.filter(conversation_id=conversation.pk).order_by("pk")
        # The locks of `remember`, in its order; then no message can begin another turn.
        known = turns.only("status", "target_list", "result_list").select_for_update()
        list(known)
        list(Conversation.objects.select_for_update().filter(pk=conversation.pk))
        locked = list(known.all())
        # What they came to, and what they cost, stays counted.
        tally.count_ended(turn.pk for turn in locked)
        relied = versions.forget_turns(turn.pk for turn in locked)
        for rows in (turns, Conversation.objects.filter(pk=conversation.pk)):
            deleted.update(rows.delete()[1])
        ring(conversation.pk)
        transaction.on_commit(partial(_clear, locked), robust=True)
    counted = {name: deleted[kind._meta.label] for kind, name in KINDS.items()}
    return Counter(counted | {RELIANCES: relied})


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
