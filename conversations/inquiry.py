"""Inquiry: many questions put to many documents, each a turn on the route of analyses.

Plan, specialists, checks, journal and trace are those of every other turn. A question is asked
under a name of its own, so what was asked before is found again and not paid twice.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents.analysis.shapes import Estimate, Evidence
from agents.analysis.work_plan import default_steps, estimate
from agents.library.assessment import Cell, Judged, Made, Requirement, Row
from agents.models import Envelope
from agents.names import ANALYSTS, Role, Route, Status
from agents.trace.trace import judged_requirements
from agents.words import Phrase
from conversations.errors import TooManyTurns
from conversations.services import Asker, Brought, Filters, ask, wait
from knowledge.language import surely
from knowledge.models import Document

FAILED = frozenset({Status.FAILED, Status.CANCELLED, Status.EXPIRED})
# What an analysis is expected to take that nobody has planned yet.
USUAL_COMPLEXITY = 50
MOST_TITLES = 3  # of what documents are held against, in a question


def can_judge() -> bool:
    """Whether a model can plan an analysis, and its route is open."""
    return bool(settings.MODELS[Role.ORCHESTRATOR].model) and Route.ANALYSIS in settings.ROUTES


def judge_name() -> str:
    """Return by which models is judged; by others, questions are asked anew."""
    return ",".join(f"{role}={settings.MODELS[role].model}" for role in ANALYSTS)


def expected(questions: int) -> Estimate:
    """Return what so many questions may come to, as such steps did lately."""
    one = estimate(default_steps("compliance", USUAL_COMPLEXITY), settings.MODELS)
    return one.model_copy(
        update={
            "calls": one.calls * questions,
            "tokens": one.tokens * questions,
            "cost": None if one.cost is None else one.cost * questions,
        }
    )


@dataclass(frozen=True)
class Inquiry:
    """How questions are put: what documents are held against, and how many at a time."""

    against: Sequence[Document] = ()
    at_once: int = 2

    def rows(self, cells: Sequence[Cell]) -> Made:
        """Yield the row of each question once it is answered. Raises ConversationError."""
        under_way: deque[tuple[Cell, Envelope]] = deque()
        for cell in cells:
            while True:
                if len(under_way) >= self.at_once:
                    yield _row(*under_way.popleft())
                try:
                    under_way.append((cell, self._begun(cell)))
                    break
                except TooManyTurns:
                    # Others ask, too: one of ours has to end first.
                    if not under_way:
                        raise
                    yield _row(*under_way.popleft())
        while under_way:
            yield _row(*under_way.popleft())

    def _begun(self, cell: Cell) -> Envelope:
        """Return the turn that answers, begun if need be; one that failed is begun anew."""
        document = cell.document
        collections = dict.fromkeys(each.collection.name for each in (document, *self.against))
        scope = Filters(documents=[document.pk, *(each.pk for each in self.against)])
        attempt = 1
        while True:
            turn = ask(
                _question(cell),
                Asker(None),
                session=f"analyse-{cell.key}-{attempt}",
                collections=list(collections),
                filters=scope,
                idempotency_key="1",
                brought=Brought(route=Route.ANALYSIS),
            )
            if turn.status not in FAILED:
                return turn
            attempt += 1


def _question(cell: Cell) -> str:
    """Return a question as it is, and whether the document complies with anything else."""
    text = cell.requirement.text
    if text.rstrip().endswith(("?", "\uff1f")):
        return text
    language = surely(text) or cell.document.language
    title = cell.document.title
    return Phrase.DOES_IT_COMPLY.in_language(language, title=title, requirement=text)


def as_a_whole(collection: str, documents: Sequence[Document]) -> Requirement:
    """Return what asks for everything that some documents require, by their titles."""
    titles = [each.title for each in documents]
    named = ", ".join(titles) if len(titles) <= MOST_TITLES else collection
    return Requirement(named, collection)


def _row(cell: Cell, turn: Envelope) -> tuple[Row, bool]:
    """Return what a turn came to as a row, and whether that is to be kept."""
    ended = wait(turn)
    payload = ended.payload
    evidence = payload.get("evidence") or {}
    judged = [
        Judged(
            requirement=each["requirement"],
            section=each["source_section"],
            verdict=each["verdict"],
            explanation=each["explanation"],
            named=[passage["id"] for passage in each["shown"]],
        )
        for each in judged_requirements(payload)
    ]
    used = dict.fromkeys(
        [*(name for each in judged for name in each.named), *_cited(payload, evidence)]
    )
    found = {
        "turn": str(ended.pk),
        "status": ended.status,
        "answer": payload.get("response", ""),
        "judged": judged,
        "evidence": [Evidence.model_validate(evidence[name]) for name in used],
    }
    return cell.row().model_copy(update=found), ended.ended and ended.status not in FAILED


def _cited(payload: dict[str, Any], evidence: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of the passages that an answer cites."""
    ids = {(each["chunk_id"], each["version"]): name for name, each in evidence.items()}
    for citation in payload.get("citations_used") or ():
        if name := ids.get((citation["chunk_id"], citation["version"])):
            yield name
