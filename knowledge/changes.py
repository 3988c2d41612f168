"""Changes: tells who listens that documents say something else now, or nothing any more."""

from collections.abc import Iterable
from hashlib import sha1

from django.dispatch import Signal

from knowledge.models import Document, Version

# Sent inside the transaction that stores or deletes, so that who listens takes effect with it:
# `documents` are the ids of those that changed or are gone, `unsaid` the digests of texts that
# nothing is kept of.
documents_changed = Signal()


def notify(documents: Iterable[str], unsaid: Iterable[str] = ()) -> None:
    """Tell of documents that changed or are gone."""
    documents_changed.send(Document, documents=list(documents), unsaid=list(unsaid))


def digest(text: str) -> str:
    """Return the SHA-1 of a document's text, which tells texts apart and protects nothing."""
    return sha1(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def text_digests(documents: Iterable[str]) -> set[str]:
    """Return the digests of all that documents with these ids say, and said before."""
    ids = list(documents)
    now = Document.objects.filter(pk__in=ids).values_list("content", flat=True)
    before = Version.objects.filter(document__in=ids).values_list("content", flat=True)
    # A few at a time: texts are long.
    return {digest(text) for texts in (now, before) for text in texts.iterator(chunk_size=50)}
