"""Page marks: what servers and sitemaps said of pages, so that only those that changed are read."""

from collections.abc import Mapping
from dataclasses import dataclass

from knowledge.models import Document, FetchedPage, Ingest, Item


@dataclass(frozen=True)
class Mark:
    """What a server and a sitemap said of a page."""

    etag: str = ""
    last_modified: str = ""
    lastmod: str = ""


def marks_of(job: Ingest) -> dict[str, Mark]:
    """Return what is known of the pages of a job's source, by origin; nothing when all are read."""
    if job.source_id is None or job.options.get("whole"):
        return {}
    stored = Document.objects.filter(collection=job.collection_id).values("origin")
    pages = FetchedPage.objects.filter(source=job.source_id, origin__in=stored)
    rows = pages.values_list("origin", "etag", "last_modified", "lastmod")
    return {origin: Mark(*rest) for origin, *rest in rows}


READ = (Item.Status.NEW, Item.Status.CHANGED, Item.Status.UNCHANGED, Item.Status.DUPLICATE)


def keep_marks(job: Ingest, marks: Mapping[str, Mark]) -> None:
    """Keep what was said of the pages that a job has taken in; those of pages that are gone go."""
    if job.source_id is None:
        return
    read = set(job.items.filter(status__in=READ).values_list("origin", flat=True))
    FetchedPage.objects.bulk_create(
        [
            FetchedPage(
                source_id=job.source_id,
                origin=origin,
                etag=mark.etag[:300],
                last_modified=mark.last_modified[:100],
                lastmod=mark.lastmod[:40],
            )
            for origin, mark in marks.items()
            if origin in read
        ],
        update_conflicts=True,
        unique_fields=["source", "origin"],
        update_fields=["etag", "last_modified", "lastmod"],
    )
    FetchedPage.objects.filter(source=job.source_id).exclude(origin__in=read).delete()
