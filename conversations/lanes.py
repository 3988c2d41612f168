"""Lanes: how many requests of a kind may hold a connection to PostgreSQL at the same time.

Questions come in crowds, and each needs the database for a moment. In a lane of their own they wait
for each other, and what is quick passes them: who follows a turn, or ends one. Whoever gives the
connection back, to wait for an answer, leaves the lane. Together the lanes are narrower than the
pool of `DATABASES`, so that nobody waits there for a server that is well.
"""

import re
import threading
from contextvars import ContextVar

from conversations import refusals
from conversations.errors import Busy
from conversations.refusals import Kind

# How long a request waits for its turn; a burst of 300 questions takes less.
PATIENCE_SECONDS = 20.0
BEGINS = re.compile(r"/|/api/chat/|/v1/chat/completions|/api/conversations/[^/]+/messages/")
FOLLOWS = re.compile(r"/api/.*/(events|cancel)/|/turns/[^/]+/stop/")


class Lane:
    """Places that requests of one kind take, one after another where there are none left."""

    def __init__(self, places: int) -> None:
        self._places = threading.BoundedSemaphore(places)

    def enter(self) -> None:
        """Take a place. Raises Busy when none became free in time."""
        if not self._places.acquire(timeout=PATIENCE_SECONDS):
            refusals.note(Kind.BUSY)
            raise Busy

    def leave(self) -> None:
        """Give the place to the next."""
        self._places.release()


# Fewer do more: threads that compute at the same time hinder each other.
QUESTIONS, FOLLOWERS, OTHERS = Lane(4), Lane(3), Lane(4)
# That of the request at hand; None: no request, or one that is to be answered whatever happens.
LANE: ContextVar[Lane | None] = ContextVar("lane", default=None)


def lane_of(method: str, path: str) -> Lane:
    """Return the lane of a request."""
    if method == "POST" and BEGINS.fullmatch(path):
        return QUESTIONS
    return FOLLOWERS if FOLLOWS.fullmatch(path) else OTHERS
