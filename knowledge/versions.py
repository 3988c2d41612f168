"""Versions: what a document says, and what it said before."""

from datetime import datetime

from knowledge.models import Document, Version


def versions(document: Document) -> list[Version]:
    """Return all that are kept, the latest first, without their texts."""
    return [latest(document), *document.versions.defer("content")]


def version(document: Document, number: int) -> Version:
    """Return one with its text. Raises Version.DoesNotExist when it is not kept."""
    if number == document.version:
        return latest(document)
    return document.versions.get(number=number)


def latest(document: Document) -> Version:
    """Return what the document says now, which is stored as no Version, in the shape of one."""
    return Version(
        document=document,
        number=document.version,
        title=document.title,
        content=document.content,
        sha1=document.sha1,
        created=document.updated,
    )


def replaced(version: Version) -> datetime | None:
    """Return when the next version took its place; None for the latest."""
    return None if version.number == version.document.version else version.replaced
