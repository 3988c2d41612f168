"""Sitemaps: which pages one named before and names no more, so that their documents may go."""

import json
from collections.abc import Collection as Group
from dataclasses import dataclass

from django.db.models import QuerySet

from knowledge.ingestion.roots import SHARE
from knowledge.models import Copy, Document, Ingest, Item

TOO_FEW = (
    "it names less than half of the pages it named before, so none was removed; if they are gone, "
    "delete their documents"
)


@dataclass(frozen=True)
class Listing:
    """What a sitemap names, kept as the body of its item until the next listing."""

    named: list[str]  # origins
    missing: list[str]  # named before, no more, and still there

    def as_bytes(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(vars(self)).encode()


def compare(item: Item, named: list[str]) -> None:
    """Note in the sitemap's item what it names, as origins, and which pages are gone.

    Of what it named before, a page is gone that nobody asked for by itself and no other sitemap
    names; none is when less than half are left, as the sitemap may be another one, or broken.
    In the caller's transaction; saves what an earlier listing kept, and not the item.
    """
    others = listings(item).exclude(origin=item.origin)
    former = listings(item).filter(origin=item.origin)
    before = {origin for said in read(former) for origin in [*said.named, *said.missing]}
    there = held(item, before)
    missing = there - {*named}
    wanted = asked(item, missing) | {origin for said in read(others) for origin in said.named}
    if item.ingest.options.get("keep_missing"):
        item.gone = []
    elif len(there) - len(missing) < SHARE * len(there):
        item.warnings = [{"source": item.origin, "reason": TOO_FEW}]
    else:
        item.gone = sorted(missing - wanted)
    former.update(body=None)
    item.body = Listing(named, sorted(missing)).as_bytes()


def listings(item: Item) -> QuerySet[Item]:
    """Return the other items of the collection that keep what a sitemap names."""
    kept = Item.objects.filter(
        ingest__collection=item.ingest.collection_id,
        kind=Item.Kind.URL,
        status=Item.Status.LISTED,
        body__isnull=False,
    )
    return kept.exclude(pk=item.pk)


def read(items: QuerySet[Item]) -> list[Listing]:
    """Return what they keep."""
    bodies = items.values_list("body", flat=True)
    return [Listing(**json.loads(bytes(body or b""))) for body in bodies]


def held(item: Item, origins: Group[str]) -> set[str]:
    """Return those that documents or copies of the collection come from."""
    documents, copies = (
        kind._default_manager.filter(
            collection=item.ingest.collection_id, origin__in=origins
        ).values_list("origin", flat=True)
        for kind in (Document, Copy)
    )
    return {*documents, *copies}


def asked(item: Item, origins: Group[str]) -> set[str]:
    """Return those that somebody asked for by themselves."""
    jobs = Ingest.objects.filter(
        collection=item.ingest.collection_id, options__asked__has_any_keys=[*origins]
    )
    said = jobs.values_list("options__asked", flat=True)
    return {address for addresses in said for address in addresses} & {*origins}
