"""Renewing: which unchanged documents are taken in anew, as models have more to say of them.

Those taken in before there was a model, or while it failed. What a model was asked about a text
stands where its calls are kept, so nothing is noted with a document.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.timezone import now

from knowledge import asking, enrichment
from knowledge.changes import digest
from knowledge.ingestion.drafts import Draft, Sheet
from knowledge.models import Collection, Document

TEXTS_AT_ONCE = 50  # of documents, in memory


@dataclass
class Renewal:
    """The open questions about documents of a collection, each asked once in a job."""

    collection: Collection
    by_source: dict[str, frozenset[str]] = field(default_factory=dict)

    def look(self, origins: Iterable[str]) -> set[tuple[str, str]]:
        """Look for open questions about what is stored of these files.

        Return (origin, digest) of the documents there are any about. Without a model nothing is
        read.
        """
        if not asking.is_on():
            return set()
        held = Document.objects.filter(collection=self.collection, origin__in=list(origins))
        rows = held.values_list("source", "origin", "sha1", "updated", "content")
        texts, settled = {}, {}
        for source, origin, sha1, updated, content in rows.iterator(chunk_size=TEXTS_AT_ONCE):
            texts[source], settled[source] = (digest(content), updated), (origin, sha1)
        found = {source: names for source, names in asking.open_questions(texts).items() if names}
        self.by_source |= found
        return {settled[source] for source in found}

    def questions(self, sheet: Sheet) -> frozenset[str]:
        """Return what models are to be asked about a page that is stored already."""
        left = self.by_source.get(sheet.source, frozenset())
        return left - {asking.DESCRIPTION} if enrichment.says_all(sheet.page) else left


def is_answered(draft: Draft, questions: frozenset[str]) -> bool:
    """Tell whether models have answered one of these by now, so that the draft says more."""
    told = {draft.sheet.source: (digest(draft.page.content), now())}
    return not questions <= asking.open_questions(told)[draft.sheet.source]
