"""Bars: what each collection's passages are measured against."""

from collections.abc import Sequence

from django.conf import settings
from django.db.models import F

from knowledge.models import Calibration
from knowledge.search.quality import SCALE, Bar


def bars(collections: Sequence[int]) -> dict[int, Bar]:
    """Return the bar of each collection by its id; the default where none was calibrated.

    Of each collection that of the embedding model whose vectors are searched.
    """
    kept = Calibration.objects.filter(
        collection__in=collections, model=F("collection__embedding_model")
    )
    known = {
        collection: Bar(threshold, scale or SCALE)
        for collection, threshold, scale in kept.values_list(
            "collection", "threshold", "report__scale"
        )
    }
    default = Bar(settings.SEARCH_CONFIDENCE_THRESHOLD)
    return {collection: known.get(collection, default) for collection in collections}
