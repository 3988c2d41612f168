"""Samples: questions that are, and questions that are not, about a collection."""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from knowledge.models import Collection, Document, GoldenQuestion, Section

EVERYDAY = Path(__file__).with_name("everyday.txt")
# Titles of other collections are fewer than everyday questions, so that a neighbour about the same
# subject cannot make up the upper quarter.
OTHERS_LIMIT = 50
OWN_LIMIT = 100
FEWEST_WORDS = 3  # "Overview" and "See also" ask for nothing


@dataclass(frozen=True)
class Sample:
    """A question, and the document whose words it was made of."""

    text: str
    document: str = ""


@cache
def everyday() -> tuple[Sample, ...]:
    """Return 200 questions of everyday life, ten about each of twenty subjects."""
    lines = EVERYDAY.read_text(encoding="utf-8").splitlines()
    return tuple(Sample(line) for line in lines if line and not line.startswith("#"))


def of_others(collection: Collection) -> list[Sample]:
    """Return what is asked of other collections: their golden questions and titles."""
    golden = GoldenQuestion.objects.exclude(collection=collection)
    asked = [Sample(each) for each in golden.values_list("question", flat=True)]
    documents = Document.objects.exclude(collection=collection)
    return drawn([*asked, *titles(documents.values_list("title", "id"))], collection, OTHERS_LIMIT)


def of_itself(collection: Collection) -> list[Sample]:
    """Return titles and headings of the collection as questions.

    Their own words would find their own document at once; whoever uses them leaves it out.
    """
    sections = Section.objects.filter(document__collection=collection)
    headings = [
        (path[-1], document)
        for path, document in sections.exclude(path=[]).values_list("path", "document")
    ]
    named = titles([*collection.documents.values_list("title", "id"), *headings])
    return drawn(named, collection, OWN_LIMIT)


def titles(named: Iterable[tuple[str, str]]) -> list[Sample]:
    """Return the titles that could be what somebody asks for, each once."""
    found = {
        title: Sample(title, document)
        for title, document in named
        if len(re.findall(r"[^\W\d_]{2,}", title)) >= FEWEST_WORDS
    }
    return list(found.values())


def drawn(samples: list[Sample], collection: Collection, limit: int) -> list[Sample]:
    """Return at most `limit` of them, the same whenever nothing has changed."""
    if len(samples) <= limit:
        return samples
    ordered = sorted(samples, key=lambda each: (each.text, each.document))
    return random.Random(collection.name).sample(ordered, limit)  # noqa: S311
