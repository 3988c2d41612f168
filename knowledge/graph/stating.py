"""Stating: what a document states of things, as somebody draws it from its text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from django.conf import settings

from knowledge.chunking import Part
from knowledge.parsing import Page


@dataclass(frozen=True)
class Named:
    """An entity as a document names it."""

    name: str
    kind: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stated:
    """A relation between two entities, each by one of its names."""

    subject: str
    predicate: str
    object: str
    part: int  # place of the chunk that says so, from 0
    valid_from: date | None = None
    valid_to: date | None = None  # the last day


@dataclass(frozen=True)
class Graph:
    """What one document states."""

    entities: tuple[Named, ...] = ()
    relations: tuple[Stated, ...] = ()
    warnings: tuple[str, ...] = ()  # for who ingests it: what did not work


Drawer = Callable[[Page, Sequence[Part]], Graph]

_drawers: list[Drawer] = []


def register(drawer: Drawer) -> None:
    """Let `drawer(page, parts)` say what a document states. It takes its time, and raises nothing.

    `parts` are the chunks as they will be stored.
    """
    _drawers.append(drawer)


def draw(page: Page, parts: Sequence[Part]) -> Graph:
    """Return what the page states; nothing unless KNOWLEDGE_GRAPH is set.

    It is called once per new or changed document, while no transaction is open, and for several
    at once in threads.
    """
    drawn = [drawer(page, parts) for drawer in _drawers] if settings.KNOWLEDGE_GRAPH else []
    return Graph(
        entities=tuple(each for graph in drawn for each in graph.entities),
        relations=tuple(each for graph in drawn for each in graph.relations),
        warnings=tuple(each for graph in drawn for each in graph.warnings),
    )
