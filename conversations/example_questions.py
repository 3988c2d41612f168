"""Example questions: what can be asked of the documents there are, without asking a model.

They are golden questions that have an answer, headings that are questions, and places of documents
whose authors say what they are about, named as they are offered when a question is asked back.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice

from django.core.cache import cache
from django.db.models import QuerySet
from django.utils.translation import get_language

from agents.words import base_language
from knowledge.models import Collection, Document, GoldenQuestion, Section

MOST = 4
# So long may what changed in the documents be unseen here.
KEPT_SECONDS = 300
# Characters that can be read at a glance; a single word says too little to choose by.
LONGEST, FEWEST_WORDS = 90, 2
# Looked through for headings that ask something, and for places.
MOST_SECTIONS, MOST_DOCUMENTS = 200, 40
ASKS = ("?", "\uff1f")


@dataclass(frozen=True)
class Example:
    """What is asked, what its button says, and in smaller letters which document it is about."""

    text: str
    label: str
    about: str = ""


def example_questions(collections: Sequence[Collection]) -> list[Example]:
    """Return questions that these collections answer, those in the reader's language first."""
    names = ",".join(str(each.pk) for each in collections)
    digest = blake2b(names.encode(), digest_size=8).hexdigest()
    key = f"examples:{digest}:{get_language()}"
    found: list[Example] | None = cache.get(key)
    if found is None:
        found = list(islice(_distinct(_examples(collections)), MOST))
        cache.set(key, found, KEPT_SECONDS)
    return found


def _examples(collections: Sequence[Collection]) -> Iterator[Example]:
    golden = GoldenQuestion.objects.filter(collection__in=collections).exclude(sources=[])
    asked = golden.order_by("created", "pk").values_list("question", flat=True)
    yield from (Example(question, question) for question in asked[: MOST * 2])
    every = Document.objects.filter(collection__in=collections, audience="").exclude(title="")
    own = every.filter(language__startswith=base_language(get_language() or "en"))
    for documents in (own, every):
        yield from _headings(documents)
        # Who describes a page means it to be read; licences and the like have no description.
        yield from _places(documents.exclude(description=""))


def _headings(documents: QuerySet[Document]) -> Iterator[Example]:
    """Yield the headings that are questions, the first of each document before its others."""
    sections = Section.objects.filter(document__in=documents, path__icontains="?")
    paths = sections.order_by("number", "document__source").values_list("path", flat=True)
    for path in paths[:MOST_SECTIONS]:
        if path and path[-1].rstrip().endswith(ASKS):
            yield Example(path[-1].strip(), path[-1].strip())


def _places(documents: QuerySet[Document]) -> Iterator[Example]:
    """Yield a place of each of some documents, from all over the collection."""
    titles = list(documents.order_by("source").values_list("pk", "title")[:MOST_DOCUMENTS])
    spread = chain.from_iterable(titles[start :: max(1, len(titles) // MOST)] for start in (0, 1))
    for document, title in spread:
        sections = Section.objects.filter(document=document, chunks__isnull=False).distinct()
        paths = sections.order_by("number").values_list("path", flat=True)[:MOST_SECTIONS]
        names = [path[-1].strip() for path in paths if path]
        fitting = (name for name in names if len(name.split()) >= FEWEST_WORDS and name != title)
        if name := next(fitting, ""):
            yield Example(f"{title} \u2014 {name}", name, title)


def _distinct(examples: Iterable[Example]) -> Iterator[Example]:
    seen: set[str] = set()
    for example in examples:
        if len(example.label) <= LONGEST and example.text.casefold() not in seen:
            seen.add(example.text.casefold())
            yield example
