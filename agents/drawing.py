"""Drawing: the routing table as an SVG picture, laid out from the table alone."""

from html import escape

from agents.atlas import Edges
from agents.names import Status
from agents.routing import Stage

BOX_WIDTH, BOX_HEIGHT = 120, 40
GAP_X, GAP_Y = 150, 34
MARGIN = 30
INK, LINE, BACK = "#1f2937", "#64748b", "#f59e0b"

Place = tuple[float, float]


def layers(edges: Edges) -> list[list[str]]:
    """Return the nodes in columns, by the number of steps from the start; endings come last."""
    found: list[list[str]] = [[next(iter(edges))]]
    seen = set(found[0])
    while found[-1]:
        following = [
            target
            for stage in found[-1]
            for target in sorted(edges[Stage(stage)])
            if target in set(edges)
        ]
        found.append([name for name in dict.fromkeys(following) if name not in seen])
        seen |= set(found[-1])
    found[-1] = sorted({target for targets in edges.values() for target in targets} - seen)
    return found


def draw(edges: Edges) -> str:
    """Return the picture as SVG text."""
    levels = layers(edges)
    width = MARGIN * 2 + len(levels) * BOX_WIDTH + (len(levels) - 1) * (GAP_X - BOX_WIDTH)
    tallest = max(len(level) for level in levels)
    height = MARGIN * 2 + tallest * (BOX_HEIGHT + GAP_Y) + 160
    places = {
        node: (
            MARGIN + column * GAP_X,
            height / 2 + (row - (len(level) - 1) / 2) * (BOX_HEIGHT + GAP_Y) - BOX_HEIGHT / 2,
        )
        for column, level in enumerate(levels)
        for row, node in enumerate(level)
    }
    lines = [
        _arrow(places[stage], places[target])
        for stage, targets in edges.items()
        for target in sorted(targets)
    ]
    boxes = [_box(node, place) for node, place in places.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="system-ui, sans-serif">'
        '<rect width="100%" height="100%" fill="white"/>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="context-stroke"/>'
        f"</marker></defs>{''.join(lines)}{''.join(boxes)}</svg>\n"
    )


def _box(node: str, place: Place) -> str:
    x, y = place
    ending = node in set(Status)
    fill = "#e2e8f0" if ending else "#dbeafe"
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
        f'rx="{20 if ending else 6}" fill="{fill}" stroke="{INK}"/>'
        f'<text x="{x + BOX_WIDTH / 2:.0f}" y="{y + 25:.0f}" text-anchor="middle" '
        f'font-size="14" fill="{INK}">{escape(node)}</text>'
    )


def _arrow(source: Place, target: Place) -> str:
    """Forward to the right; skipping columns in an arc above, going back in one below."""
    (x1, y1), (x2, y2) = source, target
    columns = round((x2 - x1) / GAP_X)
    if columns == 1:
        path = (
            f"M{x1 + BOX_WIDTH:.0f} {y1 + BOX_HEIGHT / 2:.0f} "
            f"C{x1 + GAP_X:.0f} {y1 + BOX_HEIGHT / 2:.0f} {x2 - 30:.0f} "
            f"{y2 + BOX_HEIGHT / 2:.0f} {x2:.0f} {y2 + BOX_HEIGHT / 2:.0f}"
        )
        return _path(path, LINE)
    forward = columns > 0
    edge1 = y1 if forward else y1 + BOX_HEIGHT
    edge2 = y2 if forward else y2 + BOX_HEIGHT
    lift = (30 + 16 * abs(columns)) * (-1 if forward else 1)
    path = (
        f"M{x1 + BOX_WIDTH * 0.65:.0f} {edge1:.0f} "
        f"C{x1 + BOX_WIDTH * 0.8:.0f} {edge1 + lift:.0f} "
        f"{x2 + BOX_WIDTH * 0.2:.0f} {edge2 + lift:.0f} {x2 + BOX_WIDTH * 0.35:.0f} {edge2:.0f}"
    )
    return _path(path, LINE if forward else BACK)


def _path(path: str, colour: str) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3" '
        'marker-end="url(#tip)"/>'
    )
