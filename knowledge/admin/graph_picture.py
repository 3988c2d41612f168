"""Graph picture: an entity between what leads to it and what it leads to, as SVG.

Made on the server; every other entity is a link to its own picture, so the graph can be walked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from knowledge.models import Entity, Relation

# Pixels. More neighbours on one side than this would not be read any more.
MOST = 12
WIDTH, ROW, MARGIN = 1000, 56, 16
BOX, MIDDLE, HEIGHT = 240, 220, 36
EDGE = 2.0  # so that no line is cut at the edge
LONGEST_NAME, LONGEST_LABEL = 30, 24  # letters that fit into a box, and beside a line


@dataclass
class Neighbour:
    """An entity beside the one in the middle, and how they are related."""

    entity: Entity
    predicates: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The predicates, each once."""
        return "; ".join(dict.fromkeys(self.predicates))


@dataclass(frozen=True)
class Node:
    """A box, its line to the middle, and where they are drawn."""

    name: str
    whole_name: str
    kind: str
    address: str
    label: str
    whole_label: str
    x: float
    y: float
    path: str
    label_x: float
    label_y: float
    anchor: str

    @property
    def text_x(self) -> float:
        """The middle of the box."""
        return self.x + BOX / 2


def picture(
    entity: Entity, relations: Iterable[Relation], address: Callable[[Entity], str]
) -> SafeString:
    """Return the picture; empty for an entity without relations.

    Left of it stands what has it as an object, right what it has as one. `address` is the page of
    an entity.
    """
    before: dict[int, Neighbour] = {}
    after: dict[int, Neighbour] = {}
    for relation in relations:
        is_subject = relation.subject_id == entity.pk
        other = relation.object if is_subject else relation.subject
        side = after if is_subject else before
        side.setdefault(other.pk, Neighbour(other)).predicates.append(relation.predicate)
    sides = [list(side.values()) for side in (before, after)]
    if not any(sides):
        return SafeString("")
    rows = max(min(len(side), MOST) for side in sides)
    height = 2 * MARGIN + ROW * rows
    context = {
        "width": WIDTH,
        "height": height,
        "box": BOX,
        "box_height": HEIGHT,
        "middle": {"x": (WIDTH - MIDDLE) / 2, "y": (height - HEIGHT) / 2, "width": MIDDLE},
        "centre": {"x": WIDTH / 2, "y": height / 2},
        "name": shortened(entity.name, LONGEST_NAME - 2),
        "whole_name": entity.name,
        "kind": entity.kind,
        "nodes": [
            node
            for place, side in enumerate(sides)
            for node in _nodes(side[:MOST], height, address, is_right=bool(place))
        ],
        "left_out": sum(max(0, len(side) - MOST) for side in sides),
    }
    return render_to_string("knowledge/graph.svg", context)


def _nodes(
    side: Sequence[Neighbour], height: float, address: Callable[[Entity], str], *, is_right: bool
) -> list[Node]:
    """Return the boxes of one side, evenly below each other around the middle."""
    top = (height - ROW * len(side)) / 2
    nodes = []
    for number, neighbour in enumerate(side):
        centre = top + ROW * (number + 0.5)
        outer = WIDTH - BOX - EDGE if is_right else BOX + EDGE
        inner = (WIDTH + MIDDLE) / 2 if is_right else (WIDTH - MIDDLE) / 2
        begin, end = ((inner, height / 2), (outer, centre))
        if not is_right:
            begin, end = end, begin
        half = (begin[0] + end[0]) / 2
        nodes.append(
            Node(
                name=shortened(neighbour.entity.name, LONGEST_NAME),
                whole_name=str(neighbour.entity),
                kind=neighbour.entity.kind,
                address=address(neighbour.entity),
                label=shortened(neighbour.label, LONGEST_LABEL),
                whole_label=neighbour.label,
                x=outer if is_right else EDGE,
                y=centre - HEIGHT / 2,
                path=f"M{begin[0]:g} {begin[1]:g} C{half:g} {begin[1]:g} {half:g} {end[1]:g} "
                f"{end[0]:g} {end[1]:g}",
                # On the side of the line that the others do not come from.
                label_y=centre + (15 if centre > height / 2 else -6),
                label_x=outer - 10 if is_right else outer + 6,
                anchor="end" if is_right else "start",
            )
        )
    return nodes


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters; a longer one is cut."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
