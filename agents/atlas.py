"""Atlas: finds every way through the routing table by asking it about every kind of payload."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.names import Role, Route
from agents.routing import TABLE, Decision, Stage, decide

Edges = dict[Stage, set[str]]

REQUEST = {"reason": "vague_request", "message": ""}

# For each attribute that the table looks at, the values it may tell apart.
OUTCOMES: dict[str, tuple[Any, ...]] = {
    "text": ("question", "/help"),
    "language": ("en", "de"),
    "clarification_result": (None, "exit"),
    "leaving": ([], [{"role": "user", "text": "a word", "time": "2026-01-01T00:00:00+00:00"}]),
    "enabled_routes": ([Route.DOCUMENTATION], [Route.DOCUMENTATION, Route.FALLBACK]),
    "route": (None, Route.DOCUMENTATION, Route.FALLBACK),
    "search_quality": ("excellent", "good", "poor"),
    "search_rounds": (1, 99),
    "evaluation": ({"sufficient": True}, {"sufficient": False}),
    "refined_query": ("", "other words"),
    "response": ("an answer",),
    "citations_used": ([],),
    "sources_used": ([],),
    "generation_confidence": (0.5,),
    "quality_decision": ("approve", "approve_with_reservations", "research", "regenerate"),
    "quality_score": (0.4,),
    "quality_returns": (0, 99),
    "best_answer": (None, {"response": "an answer", "quality_score": 0.6}),
    "clarification_rounds": (0, 99),
    "clarification_requests": ({}, *({role.value: REQUEST} for role in Role)),
}


class Unasked(Exception):
    """The table looked at an attribute for which no value was chosen yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class Chosen(Mapping[str, Any]):
    """A payload that holds only what was chosen for it and says what else it is asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_chosen = values

    def __getitem__(self, name: str) -> Any:
        if name not in self.values_chosen:
            raise Unasked(name)
        return self.values_chosen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_chosen)

    def __len__(self) -> int:
        return len(self.values_chosen)


def decisions(stage: Stage, **fixed: Any) -> Iterator[tuple[dict[str, Any], Decision]]:
    """Yield every decision the stage can come to, with the values that led to it.

    Raises KeyError for an attribute that is missing from OUTCOMES.
    """
    waiting: list[dict[str, Any]] = [{"stage": stage, **fixed}]
    while waiting:
        values = waiting.pop()
        try:
            yield values, decide(Chosen(values))
        except Unasked as asked:
            waiting += [values | {asked.name: value} for value in OUTCOMES[asked.name]]


def explore(**fixed: Any) -> Edges:
    """Return for each stage that can be reached where it leads: stages, or statuses it ends with.

    Values in `fixed` hold throughout, e.g. `enabled_routes`.
    """
    edges: Edges = {}
    waiting = [Stage.START]
    while waiting:
        stage = waiting.pop(0)
        if stage in edges:
            continue
        found = [decision for _, decision in decisions(stage, **fixed)]
        edges[stage] = {str(decision.ends or decision.stage) for decision in found}
        waiting += [decision.stage for decision in found if not decision.ends]
    return {stage: edges[stage] for stage in TABLE if stage in edges}
