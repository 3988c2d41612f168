"""Graph extraction: lets a model find what documents state of things while they are taken in.

Without one they are read by rules, which see little of it.
"""

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Annotated, Literal

from django.conf import settings
from pydantic import BaseModel, Field

from agents.library.descriptions import first_answers, has_model, model_of
from agents.llm.outcomes import ModelFailure
from knowledge import graph, graph_rules, model_calls
from knowledge.chunking import Part
from knowledge.graph import Graph, NamedEntity, StatedRelation
from knowledge.parsing import Page
from prompts.prompt import Block, Prompt

PROMPT = Prompt("graph", "title", "parts")
# Characters of a document that are read, some 5,500 tokens.
READ = 20_000

Name = Annotated[str, Field(min_length=1, max_length=300)]
# A year, a month or a day; empty: the document does not say.
When = Annotated[str, Field(pattern=r"^(\d{4}(-\d{2}(-\d{2})?)?)?$")]
Kind = Literal[
    "person",
    "organisation",
    "role",
    "place",
    "product",
    "system",
    "document",
    "law",
    "concept",
    "event",
    "other",
]


class Thing(BaseModel):
    """An entity as the model names it."""

    name: Name
    kind: Kind
    aliases: list[Name] = Field(max_length=20)


class Tie(BaseModel):
    """A relation as the model states it."""

    subject: Name
    predicate: Name
    object: Name
    valid_from: When
    valid_to: When
    part: int


class Extracted(BaseModel):
    """What the model finds in a document."""

    entities: list[Thing] = Field(max_length=100)
    relations: list[Tie] = Field(max_length=100)


def register() -> None:
    """Have graphs drawn where KNOWLEDGE_GRAPH is set, by the model where there is one."""
    graph.register(draw)
    model_calls.register(
        model_calls.RELATIONS, model_calls.Question(is_on, partial(first_answers, PROMPT))
    )


def is_on() -> bool:
    """Tell whether a model is asked for relations."""
    return settings.KNOWLEDGE_GRAPH and has_model()


def draw(page: Page, parts: Sequence[Part]) -> Graph:
    """Return what the model finds, or rules where there is none or it fails. One call per text."""
    llm = model_of(page.content)
    if llm is None:
        return graph_rules.draw(page, parts)
    blocks = readable(parts)
    try:
        reply = llm.ask(PROMPT, Extracted, title=page.title, parts=blocks)
    except ModelFailure as failure:
        warning = f"relations were taken in by rules alone, the model failed: {failure}"
        return replace(graph_rules.draw(page, parts), warnings=(warning,))
    left = len(parts) - len(blocks)
    return Graph(
        entities=tuple(
            NamedEntity(each.name, each.kind, tuple(each.aliases)) for each in reply.entities
        ),
        relations=tuple(map(stated, reply.relations)),
        warnings=(f"relations were taken in without its last {left} chunks",) if left else (),
    )


def readable(parts: Sequence[Part]) -> list[Block]:
    """Return the first chunks that fit, numbered from 1."""
    blocks: list[Block] = []
    left = READ
    for number, part in enumerate(parts, start=1):
        left -= len(part.text)
        if left < 0 and blocks:
            break
        heading = " > ".join(part.section)
        blocks.append(Block("part", f"{heading}\n{part.text[:READ]}", {"number": str(number)}))
    return blocks


def stated(tie: Tie) -> StatedRelation:
    """Return the relation with its days; a time that ends before it begins is none."""
    begin, end = day(tie.valid_from), day(tie.valid_to, is_last=True)
    if begin and end and begin > end:
        begin = end = None
    return StatedRelation(tie.subject, tie.predicate, tie.object, tie.part - 1, begin, end)


def day(text: str, *, is_last: bool = False) -> date | None:
    """Return the first or last day of a year, month or day; None for what is no such time."""
    numbers = [int(each) for each in text.split("-") if each]
    if not numbers:
        return None
    year, month, *rest = numbers if len(numbers) > 1 else [*numbers, 12 if is_last else 1]
    try:
        return date(year, month, rest[0] if rest else monthrange(year, month)[1] if is_last else 1)
    except ValueError:
        return None
