"""Needs: what waits for somebody now, each with the page where it is dealt with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
from django.conf import settings
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils.timezone import now

from agents.billing.models import RefundCase
from agents.llm.cost import spent_today
from agents.models import Fault
from agents.steps import presence
from agents.trace.queues import deaf_queues
from conversations import gaps
from conversations.endings import Gap
from conversations.inbox import waiting_count
from knowledge.models import Ingest

# Failed ingests and faults that are older are no news.
LATELY = timedelta(days=7)
NEARLY = 0.8  # of a budget
SHOWN = 3


@dataclass(frozen=True)
class Need:
    """So many of something wait; `page` is the name of an URL. `urgent`: users notice it."""

    count: int | str
    said: str
    page: str
    query: str = ""
    urgent: bool = False

    @property
    def link(self) -> str:
        """Where it is dealt with."""
        return reverse(self.page) + self.query


def needs(user: Any) -> Iterator[Need]:
    """Yield what waits, as far as it is the user's to see; not what there is none of."""
    for find, permission in FINDERS.items():
        if user.has_perm(permission):
            yield from (need for need in find() if need.count)


def _workers() -> Iterator[Need]:
    try:
        missing = [*map(str, presence.missing_roles()), *presence.missing_services()]
    except redis.RedisError:
        yield Need("!", "Redis does not answer", "admin-queues", urgent=True)
        return
    some = ", ".join(missing[:SHOWN]) + (" and others" if len(missing) > SHOWN else "")
    yield Need(len(missing), f"without a process: {some}", "admin-queues", urgent=True)
    deaf = deaf_queues()
    yield Need(len(deaf), f"deaf: {', '.join(deaf)}", "admin-queues", urgent=True)


def _handovers() -> Iterator[Need]:
    page = "admin:conversations_handover_changelist"
    count = waiting_count()
    said = "conversation waits for staff" if count == 1 else "conversations wait for staff"
    yield Need(count, said, page, "?box=waiting", urgent=True)


def _refunds() -> Iterator[Need]:
    open_cases = RefundCase.objects.filter(status=RefundCase.Status.OPENED)
    late = open_cases.filter(due__lt=now().date()).count()
    count = open_cases.count()
    said = "refund case awaits a decision" if count == 1 else "refund cases await a decision"
    said += f", {late} late" if late else ""
    page, query = "admin:billing_refundcase_changelist", "?status__exact=opened"
    yield Need(count, said, page, query, urgent=bool(late))


def _budget() -> Iterator[Need]:
    if not settings.DAILY_BUDGET:
        return
    share = float(spent_today()) / settings.DAILY_BUDGET
    if share >= NEARLY:
        said = f"of today's budget of {settings.DAILY_BUDGET:g} USD is spent"
        page = "admin:agents_modelcall_usage"
        yield Need(f"{100 * share:.0f} %", said, page, urgent=share >= 1)


def _unanswered() -> Iterator[Need]:
    found = gaps.with_questions(Gap.objects.order_by()).filter(gaps.OPEN).count()
    page = "admin:conversations_gap_changelist"
    yield Need(found, f"unanswered question{pluralize(found)}", page)


def _ingests() -> Iterator[Need]:
    failed = Ingest.objects.filter(status=Ingest.Status.FAILED, created__gte=now() - LATELY)
    page, query = "admin:knowledge_ingest_changelist", "?status__exact=failed"
    count = failed.count()
    yield Need(count, f"ingest{pluralize(count)} failed in the last 7 days", page, query)


def _faults() -> Iterator[Need]:
    found = Fault.objects.filter(created__gte=now() - LATELY).count()
    page = "admin:agents_fault_changelist"
    yield Need(found, f"fault{pluralize(found)} in the last 7 days", page)


# What is looked for, and who is told: the first first.
FINDERS: dict[Callable[[], Iterator[Need]], str] = {
    _workers: "agents.view_envelope",
    _handovers: "conversations.view_handover",
    _budget: "agents.view_modelcall",
    _refunds: "billing.view_refundcase",
    _unanswered: "conversations.view_gap",
    _ingests: "knowledge.view_ingest",
    _faults: "agents.view_fault",
}
