"""Collections: found by their names."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Count, F, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from knowledge.errors import UnknownCollection
from knowledge.models import (
    Calibration,
    Chunk,
    Collection,
    Document,
    GoldenQuestion,
    Ingest,
    Item,
)
from knowledge.postgres_text import storable

# What documents go into when nobody names a collection.
DEFAULT_COLLECTION = "documents"
# What `docs/` goes into, so that there is something to ask before there are other documents.
OWN_DOCUMENTATION = "docent"
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Reach:
    """What of the documents a request may look into."""

    collections: tuple[str, ...] | None = None  # their names, sorted; None: all
    audience: str = ""  # whom the documents must be for; empty: anybody

    def __contains__(self, name: str) -> bool:
        return self.collections is None or name in self.collections

    def check(self, names: Iterable[str]) -> None:
        """Raise UnknownCollection for a name that is out of reach, whether it exists or not."""
        if foreign := {name for name in names if name not in self}:
            raise UnknownCollection(foreign, self.collections or ())

    def within(self, rows: "QuerySet[Row]", path: str = "collection__name") -> "QuerySet[Row]":
        """Return the rows of collections in reach; `path` leads to the name of a row's."""
        if self.collections is None:
            return rows
        return rows.filter(**{f"{path}__in": self.collections})


@dataclass(frozen=True)
class Intake:
    """How far the ingests are that are not over: files, pages and uploads."""

    finished: int
    items: int

    def __str__(self) -> str:
        return f"The documents are still being taken in: {self.finished:,} of {self.items:,}"


def intake(names: Iterable[str]) -> Intake | None:
    """Return how far the ingests of these collections are, of all for no names; None: all over."""
    open_jobs = Ingest.objects.filter(
        kind=Ingest.Kind.INGEST, status__in=(Ingest.Status.QUEUED, Ingest.Status.RUNNING)
    )
    if chosen := list(names):
        open_jobs = open_jobs.filter(collection__name__in=chosen)
    ids = list(open_jobs.order_by().values_list("pk", flat=True))
    if not ids:
        return None
    counts = Item.objects.filter(ingest__in=ids).aggregate(
        items=Count("pk"), finished=Count("pk", filter=~Q(status=Item.Status.WAITING))
    )
    return Intake(**counts)


def beginning() -> Intake | None:
    """Return how far the documentation is with which Docent begins; None: in, or there is more.

    It is a few pages, so a question waits for all of them: from some it would be answered badly.
    """
    whole = Ingest.objects.filter(collection__name=OWN_DOCUMENTATION, status=Ingest.Status.DONE)
    others = Document.objects.exclude(collection__name=OWN_DOCUMENTATION)
    if whole.exists() or others.exists():
        return None
    return intake([OWN_DOCUMENTATION])


def collections_named(names: Iterable[str]) -> list[Collection]:
    """Return the collections of these names; raise UnknownCollection naming those there aren't."""
    distinct_names = {storable(name) for name in names}
    collections = list(Collection.objects.filter(name__in=distinct_names))
    if unknown := distinct_names - {collection.name for collection in collections}:
        raise UnknownCollection(unknown, Collection.objects.values_list("name", flat=True))
    return collections


def with_sizes(collections: QuerySet[Collection]) -> QuerySet[Collection]:
    """Return them with `document_count`, `chunk_count`, `question_count` and `threshold`.

    The threshold is that of the embedding model in use, None where nothing was calibrated.
    """
    threshold = Calibration.objects.filter(
        collection=OuterRef("pk"), model=OuterRef("embedding_model")
    )
    return collections.annotate(
        document_count=count(Document, "collection"),
        chunk_count=count(Chunk, "document__collection"),
        question_count=count(GoldenQuestion, "collection"),
        threshold=Subquery(threshold.values("threshold")[:1]),
    )


def count(kind: type[Model], path: str, of: str = "pk") -> Coalesce:
    """Return the number of rows by owner, each kind apart: joins would multiply them.

    With `of`, how many different values of that field they have.
    """
    rows = kind._default_manager.filter(**{path: OuterRef("pk")}).order_by()
    row_counts = (
        rows.annotate(owner=F(path)).values("owner").annotate(number=Count(of, distinct=of != "pk"))
    )
    return Coalesce(Subquery(row_counts.values("number")), 0)
