"""Drawing: every way through the routing table, found by asking it, as an SVG picture."""

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from agents.analysis.work_plan import DEFAULTS
from agents.decision import Decision, Stage
from agents.names import Role, Route, Status
from agents.routing import TABLE, decide

Edges = dict[Stage, set[str]]

REQUEST = {"reason": "vague_request", "message": ""}

# For each attribute that the table looks at, the values it may tell apart.
OUTCOMES: dict[str, tuple[Any, ...]] = {
    "text": ("question", "/help", "yes"),
    "refund_form": (None, {"is_shown": True}),
    "open_clarification": (None,),
    "language": ("en", "de"),
    "clarification_result": (None, "exit"),
    "small_talk": (None, "greeting", "person"),
    "leaving": ([], [{"role": "user", "text": "a word", "time": "2026-01-01T00:00:00+00:00"}]),
    "enabled_routes": (
        [Route.DOCUMENTATION],
        [Route.DOCUMENTATION, Route.BILLING, Route.FALLBACK],
        [Route.DOCUMENTATION, Route.ANALYSIS, Route.FALLBACK],
        [Route.BILLING],
        [Route.ANALYSIS],
        [Route.FALLBACK],
    ),
    "route": (None, *Route),
    "route_confidence": (0.3, 0.9),
    "guardrails_verdict": ("safe", "suspected"),
    "search_quality": ("excellent", "good", "poor"),
    "search_rounds": (1, 99),
    "evaluation": ({"sufficient": True}, {"sufficient": False}),
    "refined_query": ("", "other words"),
    "canonical_question": ("a question",),
    "tried_searches": ([],),
    "response": ("an answer",),
    "citations_used": ([],),
    "sources_used": ([],),
    "generation_confidence": (0.5,),
    "validation_result": ({},),
    "answer_form": ("quoted",),
    "suggested_actions": ([],),
    "quality_decision": ("approve", "approve_with_reservations", "research", "regenerate"),
    "quality_score": (0.4,),
    "answer_worth": (0.1, 0.6),
    "quality_analysis": ("what is wrong",),
    "quality_returns": (0, 99),
    "best_answer": (None, {"response": "an answer", "quality_score": 0.6, "answer_worth": 0.5}),
    "clarification_rounds": (0, 99),
    "search_stats": (
        {"chunks": 9, "unproven": [], "absent": []},
        {"chunks": 0, "unproven": ["example"], "absent": ["poison"]},
    ),
    "analysis_plan": (
        {"complexity_score": 80, "steps": [["extractor"]]},
        {"complexity_score": 10, "steps": []},
    ),
    "plan_step": (0, 99),
    "analysis_request": (None, {"specialists": ["risk_verifier"]}),
    "extra_rounds": (0, 99),
    "shortcomings": ([], [{"reason": "budget"}]),
    "clarification_reason": ("vague_request", "off_topic"),
    "clarification_requests": ({}, *({role.value: REQUEST} for role in Role)),
}


class UnchosenAttribute(Exception):
    """The table looked at an attribute for which no value was chosen yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class ChosenPayload(Mapping[str, Any]):
    """A payload that holds only what was chosen for it and says what else it is asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.chosen = values

    def __getitem__(self, name: str) -> Any:
        if name not in self.chosen:
            raise UnchosenAttribute(name)
        return self.chosen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.chosen)

    def __len__(self) -> int:
        return len(self.chosen)


def decisions(stage: Stage, **fixed: Any) -> Iterator[tuple[dict[str, Any], Decision]]:
    """Yield every decision the stage can come to, with the values that led to it.

    Raises KeyError for an attribute that is missing from OUTCOMES.
    """
    waiting: list[dict[str, Any]] = [{"stage": stage, **fixed}]
    while waiting:
        values = waiting.pop()
        try:
            yield values, decide(ChosenPayload(values))
        except UnchosenAttribute as attribute:
            waiting += [values | {attribute.name: value} for value in OUTCOMES[attribute.name]]


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
        outcomes = [decision for _, decision in decisions(stage, **fixed)]
        edges[stage] = {str(decision.ends or decision.stage) for decision in outcomes}
        waiting += [decision.stage for decision in outcomes if not decision.ends]
    return {stage: edges[stage] for stage in TABLE if stage in edges}


WIDTH, HEIGHT = 112, 38
STEP_X, STEP_Y = 140, 84
MARGIN, ABOVE, BELOW = 24, 200, 150
LINE = 24
INK, FORWARD, BACK = "#1f2937", "#64748b", "#d97706"

Place = tuple[float, float]


def columns(edges: Edges) -> list[list[str]]:
    """Return the nodes in columns, the busiest of each first.

    A column is the longest way from the start that follows the order of the table; a stage that
    is only gone back to stands just before the first it leads to. The endings come last.
    """
    order = {str(stage): place for place, stage in enumerate(edges)}
    forward = {
        stage: [target for target in targets if order.get(target, -1) > order[stage]]
        for stage, targets in edges.items()
    }
    depth: dict[str, int] = dict.fromkeys(order, 0)
    reached = {target for targets in forward.values() for target in targets}
    for stage in edges:
        if stage not in reached and order[stage]:
            depth[stage] = min(depth[target] for target in forward[stage]) - 1
        for target in forward[stage]:
            depth[target] = max(depth[target], depth[stage] + 1)
    ends = {target for targets in edges.values() for target in targets} - set(order)
    busy = Counter(name for stage, targets in edges.items() for name in (stage, *targets))
    grid: list[list[str]] = [[] for _ in range(max(depth.values()) + 2)]
    for name, column in depth.items():
        grid[column].append(name)
    grid[-1] = sorted(ends)
    return [sorted(column, key=lambda name: -busy[name]) for column in grid]


def draw(edges: Edges) -> str:
    """Return the picture as SVG text; below it the usual plans, where specialists may work."""
    grid = columns(edges)
    places = {
        name: (MARGIN + x * STEP_X, ABOVE + y * STEP_Y)
        for x, column in enumerate(grid)
        for y, name in enumerate(column)
    }
    width = 2 * MARGIN + (len(grid) - 1) * STEP_X + WIDTH
    bottom = ABOVE + max(map(len, grid)) * STEP_Y + BELOW
    plans = _plans(bottom) if Stage.SPECIALISTS in edges else []
    height = bottom + (len(DEFAULTS) + 1) * LINE * bool(plans)
    arrows = [
        _arrow(places[stage], places[target])
        for stage, targets in edges.items()
        for target in sorted(targets)
    ]
    boxes = [_box(name, place) for name, place in places.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="system-ui, sans-serif">'
        '<rect width="100%" height="100%" fill="white"/>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="context-stroke"/>'
        f"</marker></defs>{''.join(arrows)}{''.join(boxes)}{''.join(plans)}</svg>\n"
    )


def _plans(top: int) -> list[str]:
    """The steps of the usual plan for each type of question, a line each."""
    lines = ["What specialists do where no model gave a plan that can be followed:"]
    for query_type, steps in DEFAULTS.items():
        told = " → ".join(" + ".join(step).replace("_", " ") for step in steps)
        lines.append(f"{query_type.replace('_', ' ')}: {told}")
    return [
        f'<text x="{MARGIN}" y="{top + LINE * number}" font-size="14" fill="{INK}">'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    ]


def _box(name: str, place: Place) -> str:
    x, y = place
    ending = name in set(Status)
    fill, corner = ("#e2e8f0", HEIGHT / 2) if ending else ("#dbeafe", 6)
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="{corner}" '
        f'fill="{fill}" stroke="{INK}"/>'
        f'<text x="{x + WIDTH / 2}" y="{y + 24}" text-anchor="middle" font-size="14" '
        f'fill="{INK}">{escape(name.replace("_", " "))}</text>'
    )


def _arrow(source: Place, target: Place) -> str:
    """To the next column straight; further on in an arc above; back, or from below, beneath."""
    (x1, y1), (x2, y2) = source, target
    steps = round((x2 - x1) / STEP_X)
    if steps == 1:
        start, end = (x1 + WIDTH, y1 + HEIGHT / 2), (x2, y2 + HEIGHT / 2)
        return _curve(start, (start[0] + 20, start[1]), (end[0] - 20, end[1]), end, FORWARD)
    above = steps > 0 and y1 == ABOVE
    edge = 0 if above else HEIGHT
    lift = (24 + 17 * abs(steps)) * (-1 if above else 1)
    # The further an arc goes, the further out it leaves and the nearer it arrives.
    share = min(0.9, 0.5 + 0.06 * abs(steps))
    leave, arrive = (share, 1 - share) if steps > 0 else (1 - share, share)
    start = (x1 + WIDTH * leave, y1 + edge)
    end = (x2 + WIDTH * arrive, y2 + edge)
    return _curve(
        start,
        (start[0], start[1] + lift * 1.3),
        (end[0], end[1] + lift * 1.3),
        end,
        FORWARD if steps > 0 else BACK,
    )


def _curve(start: Place, leaving: Place, arriving: Place, end: Place, colour: str) -> str:
    points = " ".join(f"{x:.0f} {y:.0f}" for x, y in (leaving, arriving, end))
    return (
        f'<path d="M{start[0]:.0f} {start[1]:.0f} C{points}" fill="none" stroke="{colour}" '
        'stroke-width="1.4" marker-end="url(#tip)"/>'
    )
