"""Corrections: staff write over what a file says of itself.

`knowledge.ingestion.edits` says how long that holds.
"""

from collections.abc import Mapping

from django.db import transaction
from django.utils.timezone import now

from knowledge import changes
from knowledge.errors import KnowledgeError
from knowledge.ingestion.edits import EDITABLE
from knowledge.ingestion.plan import create_job
from knowledge.ingestion.store import keep_version, lock_collection
from knowledge.models import Document, Ingest, Item
from knowledge.postgres_text import storable


class UnusableEdit(KnowledgeError):
    """A document needs a title."""

    code = "unusable_edit"


def edit(document: Document, values: Mapping[str, str]) -> Ingest | None:
    """Write over what a file says of itself; return the job that has it found by its new title.

    None where the title stays: the rest counts at once. A new title is a new version, so that old
    answers still show the title they cited. What equals the file's own word is no edit any more.
    Raises UnusableEdit.
    """
    if not values.get("title", document.title).strip():
        raise UnusableEdit
    with transaction.atomic():
        lock_collection(document.collection)
        row = Document.objects.select_for_update().get(pk=document.pk)
        changed = {
            name: said
            for name in EDITABLE
            if (said := storable(values.get(name, getattr(row, name))).strip())
            != getattr(row, name)
        }
        if not changed:
            return None
        if "title" in changed:
            keep_version(row)
            row.version += 1
            row.updated = now()
        row.edits = dict(row.edits)
        for name, said in changed.items():
            over = row.edits.get(name, {}).get("over") or known_words(row, name)
            row.edits[name] = {"said": said, "over": over}
            if over == [said]:
                del row.edits[name]
            setattr(row, name, said)
        row.save()
        changes.notify([row.pk])
        return embed_anew(row) if "title" in changed else None


def known_words(document: Document, name: str) -> list[str]:
    """Return what the file says in a field, or may say where nobody noted it."""
    if name in document.stated:
        return [document.stated[name]]
    return list(dict.fromkeys(["", getattr(document, name)]))


def embed_anew(document: Document) -> Ingest:
    """Make a job that cuts and embeds anew what is stored of a document."""
    item = Item(kind=Item.Kind.STORED, origin=document.origin, location=document.pk)
    name = f"new title of {document.source}"[:1000]
    return create_job(document.collection, name, {"force": True}, [item])
