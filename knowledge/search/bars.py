"""Bars: what each collection's passages are measured against."""

from collections.abc import Sequence

from django.conf import settings

from knowledge.search.quality import SCALE, Bar
from knowledge.search.statements import array, rows

# As `rows` sends it, this takes a quarter of what the same question takes as a query set.
STATEMENT = """
SELECT calibration.collection_id, threshold, (report ->> 'scale')::float8
FROM knowledge_calibration AS calibration
    JOIN knowledge_collection AS collection ON collection.id = calibration.collection_id
        AND calibration.model = collection.embedding_model
WHERE collection.id = ANY(%(collections)s::bigint[])
"""


def bars(collections: Sequence[int]) -> dict[int, Bar]:
    """Return the bar of each collection by its id; the default where none was calibrated.

    Of each collection that of the embedding model whose vectors are searched.
    """
    known = {
        collection: Bar(threshold, scale or SCALE)
        for collection, threshold, scale in rows(STATEMENT, {"collections": array(collections)})
    }
    default = Bar(settings.SEARCH_CONFIDENCE_THRESHOLD)
    return {collection: known.get(collection, default) for collection in collections}
