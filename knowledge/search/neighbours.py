"""Neighbours: what stands around a passage in its document."""

from knowledge.models import Chunk


def neighbours(chunk_id: int, *, before: int = 1, after: int = 1) -> list[Chunk]:
    """Return the chunk with up to so many before and after it, in the order of the text.

    Across the borders of sections, never of the document; empty when there is no such chunk.
    """
    chunk = Chunk.objects.filter(pk=chunk_id).only("document", "number").first()
    if chunk is None:
        return []
    span = (chunk.number - before, chunk.number + after)
    return list(
        Chunk.objects.filter(document=chunk.document_id, number__range=span)
        .select_related("document", "section")
        .defer("document__content")
        .order_by("number")
    )
