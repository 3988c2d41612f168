"""Reliance: which answers cited which version of a document."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from knowledge.models import Document, Reliance


def record(turn: uuid.UUID, citations: Iterable[Mapping[str, Any]]) -> None:
    """Note the documents an answer cites, in the caller's transaction; twice is once."""
    cited = {(each["document_id"], each["version"]) for each in citations}
    Reliance.objects.bulk_create(
        [Reliance(turn=turn, document=document, version=version) for document, version in cited],
        ignore_conflicts=True,
    )


def forget(turns: Iterable[uuid.UUID]) -> int:
    """Delete what is known of these turns; return how many rows."""
    return Reliance.objects.filter(turn__in=list(turns)).delete()[0]


def relying(documents: Iterable[str]) -> list[uuid.UUID]:
    """Return the turns whose answers cited any version of the documents with these ids."""
    found = Reliance.objects.filter(document__in=list(documents)).order_by("turn")
    return list(found.values_list("turn", flat=True).distinct())


def relying_on(document: Document) -> list[Reliance]:
    """Return the answers that cite a document, the latest first.

    Those whose `version` is below the document's own may be outdated.
    """
    return list(Reliance.objects.filter(document=document.pk).order_by("-created", "pk"))
