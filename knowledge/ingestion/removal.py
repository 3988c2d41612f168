"""Removal: follows files that are gone."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Q

from knowledge.models import Collection, Document


def remove_missing(
    collection: Collection,
    *,
    folders: Iterable[str],
    files: Iterable[str],
    seen: set[str],
    unread: Iterable[str],
) -> list[str]:
    """Delete the documents whose file or entry is gone; return their sources.

    `folders` and `files` are the origins that were ingested, `seen` the sources found in them.
    What could not be read (`unread`: files, and folders with all in them) is not gone.
    """
    ingested = Q(origin__in=list(files))
    for folder in folders:
        ingested |= Q(origin__startswith=f"{folder}/")
    kept = Q(pk__in=[])
    for origin in unread:
        kept |= Q(origin=origin) | Q(origin__startswith=f"{origin}/")
    there = collection.documents.filter(ingested).exclude(kept).values_list("source", "pk")
    gone = {source: key for source, key in there if source not in seen}
    with transaction.atomic():
        Document.objects.filter(pk__in=gone.values()).delete()
    return sorted(gone)
