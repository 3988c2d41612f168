"""Neighbours: what stands around passages in their documents."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Q

from knowledge.models import Chunk


@dataclass(frozen=True)
class Beside:
    """The texts of the chunks before and after one, in the order of the document."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def neighbours(chunks: Iterable[int], *, most: int = 1) -> dict[int, Beside]:
    """Return what stands beside the chunks with these ids, `most` on either side.

    Across the borders of sections, never of the document; nothing for a chunk there is not.
    """
    found = Chunk.objects.filter(pk__in=list(chunks))
    asked = list(found.values_list("pk", "document", "number"))
    spans = Q(pk__in=[])
    for _, document, number in asked:
        spans |= Q(document=document, number__range=(number - most, number + most))
    rows = Chunk.objects.filter(spans).values_list("document", "number", "text")
    texts = {(document, number): text for document, number, text in rows}

    def there(document: str, numbers: range) -> list[str]:
        return [texts[document, each] for each in numbers if (document, each) in texts]

    return {
        pk: Beside(
            before=there(document, range(number - most, number)),
            after=there(document, range(number + 1, number + most + 1)),
        )
        for pk, document, number in asked
    }
