"""Listing: makes items of what an archive or a sitemap holds."""

from collections.abc import Iterator, Sequence

from django.db import transaction

from knowledge.errors import Unreadable
from knowledge.ingestion.drafts import digest
from knowledge.ingestion.holding import Hold
from knowledge.ingestion.known import Known
from knowledge.ingestion.loading import Loaded
from knowledge.ingestion.planning import LONGEST, added, of_urls
from knowledge.ingestion.sitemaps import compare
from knowledge.ingestion.unpacking import Member
from knowledge.models import Ingest, Item
from knowledge.postgres_text import storable

WRITTEN = ("status", "body", "sha1", "gone", "warnings")


def list_items(hold: Hold, item: Item, loaded: Loaded, known: Known) -> None:
    """Append what the item holds to its job, once, and let go of the item's bytes."""
    job = hold.job
    known.reopen(storable(member.origin)[:LONGEST] for member in loaded.members)
    with transaction.atomic():
        hold.progress()
        fresh = [address for address in loaded.addresses if address not in known.listed]
        found = [*of_urls(fresh), *of_members(loaded.members, known)]
        added(job, found)
        item.status, item.body, item.sha1 = Item.Status.LISTED, None, loaded.sha1
        if loaded.addresses:
            compare(item, [address[:LONGEST] for address in loaded.addresses])
        item.save(update_fields=WRITTEN)
        ignored = job.options.setdefault("ignored", {})
        for reason, count in loaded.ignored.items():
            ignored[reason] = ignored.get(reason, 0) + count
        if item.kind == Item.Kind.FILE:
            # Of an upload nobody knows whether it is the same archive or another of its name.
            job.options.setdefault("folders", []).append(item.origin)
        Ingest.objects.filter(pk=job.pk).update(options=job.options)
    known.list_items()


def of_members(members: Sequence[Member], known: Known) -> Iterator[Item]:
    """Yield an item for each member; those whose bytes are stored already are done with."""
    for member in members:
        item = Item(kind=Item.Kind.UPLOAD, origin=storable(member.origin)[:LONGEST])
        try:
            body = member.read()
        except Unreadable as error:
            item.status, item.reason = Item.Status.SKIPPED, str(error)
        else:
            item.sha1 = digest(body)
            if known.by_origin.get(item.origin) and (item.origin, item.sha1) in known.settled:
                item.status, item.counts, item.documents = (
                    Item.Status.UNCHANGED,
                    {"unchanged": 1},
                    1,
                )
            else:
                item.body, item.sha1 = body, ""
        yield item
