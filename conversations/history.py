"""History: the latest messages, which a turn sees, and those that leave for the summary.

Messages leave a turn before they drop out of the history, for what leaves in this turn is in the
summary of the next one only: so there is no turn that sees a message in neither.
"""

from collections.abc import Iterable, Sequence

from django.conf import settings

from conversations.models import Conversation, Message

# What an answer refers to is always there: the last question and its answer.
LEAST = 2
# What one turn adds: two messages, and usually less than this part of HISTORY_TOKENS.
TURN, PART = 2, 0.25
# Messages, and tokens of them, that are folded into the summary in one turn. What is more waits
# for the next one: a turn adds fewer than leave, so the rest gets less and less.
LEAVING = 40
LEAVING_TOKENS = 6000
# Around each message in a prompt: who said it, and when.
FRAME_TOKENS = 8


def divided(conversation: Conversation) -> tuple[list[Message], list[Message]]:
    """Return the messages a turn sees, and those that leave in it; oldest first.

    The latest HISTORY_MESSAGES that fit into HISTORY_TOKENS are seen, the last two in any case.
    When one that is not in the summary yet may drop out next, it leaves with all that are older
    than the latest half: so a model is asked every third turn or so, and not in each.
    """
    said = conversation.messages.order_by("-created", "-pk")[: settings.HISTORY_MESSAGES]
    latest = list(said)
    history = latest[: max(LEAST, fitting(latest, settings.HISTORY_TOKENS))]
    safe = latest[: settings.HISTORY_MESSAGES - TURN]
    safe = safe[: fitting(safe, round(settings.HISTORY_TOKENS * (1 - PART)))]
    waiting = unsummarised(conversation)
    if not waiting or waiting[0] in safe:
        return history[::-1], []
    kept = safe[: len(safe) // 2]
    leaving = [message for message in waiting if message not in kept]
    return history[::-1], leaving[: max(1, fitting(leaving, LEAVING_TOKENS))]


def unsummarised(conversation: Conversation) -> list[Message]:
    """Return the oldest messages that are not in the summary yet, in their order."""
    said = conversation.messages.order_by("created", "pk")
    if conversation.summarised_until:
        said = said.filter(created__gt=conversation.summarised_until)
    return list(said[:LEAVING])


def fitting(messages: Sequence[Message], most: int) -> int:
    """Return how many of the messages, from the first, have at most so many tokens together."""
    left = most
    for place, message in enumerate(messages):
        left -= tokens(message.text)
        if left < 0:
            return place
    return len(messages)


def tokens(text: str) -> int:
    """Return about how many tokens a model makes of a message.

    A quarter of its bytes in UTF-8: the usual four characters to a token in English, two in
    Cyrillic, and somewhat less than one per character in Chinese. No model's own tokenizer is
    asked: every model has another, and web processes load none.
    """
    return len(text.encode()) // 4 + FRAME_TOKENS


def remarks(messages: Iterable[Message]) -> list[dict[str, str]]:
    """Return messages as agents see them."""
    return [
        {"role": said.role, "text": said.text, "time": said.created.isoformat()}
        for said in messages
    ]
