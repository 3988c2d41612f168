"""Overview: the queues, the turns under way and the servers, as they are shown."""

from dataclasses import dataclass

from django.conf import settings
from django.utils.timezone import now

from agents import presence
from agents.models import Envelope
from agents.names import Status
from agents.watching.queues import WINDOW, Queue, State, seen, words


@dataclass(frozen=True)
class Overview:
    """All there is to see of the work at one moment."""

    queues: list[Queue]
    turns: int  # under way
    overdue: int  # past their deadline, and not ended: no sweeper runs
    sweepers: int | None  # None: Redis is away
    turns_limit: int
    turns_limit_per_key: int
    window_seconds: int = int(WINDOW.total_seconds())

    @property
    def redis(self) -> bool:
        """Whether Redis answers."""
        return self.sweepers is not None

    @property
    def troubled(self) -> list[Queue]:
        """The queues that nobody listens to, and the deaf ones."""
        return [queue for queue in self.queues if queue.state in (State.DESERTED, State.DEAF)]


def overview() -> Overview:
    """Return what there is to see now. Raises django.db.Error when PostgreSQL is away."""
    said = words()
    running = Envelope.objects.filter(status=Status.RUNNING)
    overdue = running.filter(deadline__lt=now()).count()
    return Overview(
        queues=seen(said),
        turns=running.count() - overdue,
        overdue=overdue,
        sweepers=None if said is None else sum(presence.SWEEPER in each.queues for each in said),
        turns_limit=settings.MAX_TURNS,
        turns_limit_per_key=settings.MAX_TURNS_PER_KEY,
    )
