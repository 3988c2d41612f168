"""Languages: what the documents are written in, and a question that is in none of it.

The local model knows English. A question in another language than the documents is searched for
by the vectors of the multilingual model, where CROSS_LINGUAL has let them be made.
"""

from dataclasses import replace

from django.conf import settings

from knowledge.identifiers import LOCAL_MODEL, MULTILINGUAL_MODEL
from knowledge.search.confidence import SCALE, Bar
from knowledge.search.scope import Scope
from knowledge.search.sql import array_literal, rows

# A language of a few pages is none that the documents are written in.
SHARE = 0.1
# The others are those of jobs at work: they must not take the model away from all.
FILLED = 0.9

LANGUAGES = """
SELECT spoken FROM (
    SELECT split_part(language, '-', 1) AS spoken, count(*) AS here,
        sum(count(*)) OVER () AS everywhere
    FROM knowledge_document AS document
    WHERE collection_id = ANY(%(collections)s::bigint[]) AND {condition} GROUP BY spoken
) AS languages
WHERE here >= %(share)s::float8 * everywhere ORDER BY here DESC, spoken LIMIT 3
"""
FOREIGN = """
SELECT document.collection_id, max(threshold), max((report ->> 'scale')::float8)
FROM knowledge_document AS document
    LEFT JOIN knowledge_documentvector AS vector
        ON vector.document_id = document.id AND vector.model = %(model)s
    LEFT JOIN knowledge_calibration AS calibration
        ON calibration.collection_id = document.collection_id AND calibration.model = %(model)s
WHERE document.collection_id = ANY(%(candidates)s::bigint[]) AND {condition}
GROUP BY document.collection_id
HAVING count(*) FILTER (
        WHERE split_part(language, '-', 1) = %(spoken)s
    ) < %(share)s::float8 * count(*)
    AND count(vector.id) >= %(filled)s::float8 * count(*)
"""


def languages_in(scope: Scope) -> list[str]:
    """Return the codes of the languages the documents are written in, the commonest first."""
    statement = LANGUAGES.format(condition=scope.condition or "TRUE")
    return [code for (code,) in rows(statement, scope.values | {"share": SHARE})]


def across(scope: Scope, language: str) -> Scope:
    """Return the scope as a question in that language is to be searched for.

    In each collection of which next to nothing is written in it, the multilingual model takes the
    local one's place as soon as its vectors are there. Models behind endpoints keep theirs: they
    know many languages.
    """
    candidates = scope.models.get(LOCAL_MODEL, [])
    if not candidates:
        return scope
    values = scope.values | {
        "candidates": array_literal(candidates),
        "model": MULTILINGUAL_MODEL,
        "spoken": language.partition("-")[0],
        "share": SHARE,
        "filled": FILLED,
    }
    found = rows(FOREIGN.format(condition=scope.condition or "TRUE"), values)
    bars = {collection: bar(threshold, scale) for collection, threshold, scale in found}
    models = scope.models | {
        LOCAL_MODEL: [each for each in candidates if each not in bars],
        MULTILINGUAL_MODEL: [*scope.models.get(MULTILINGUAL_MODEL, []), *bars],
    }
    return replace(
        scope,
        models={model: ids for model, ids in models.items() if ids},
        bars=scope.bars | bars,
    )


def bar(threshold: float | None, scale: float | None) -> Bar:
    """Return what a collection's passages are measured against."""
    if threshold is None:
        return Bar(settings.SEARCH_CONFIDENCE_THRESHOLD, is_foreign=True)
    return Bar(threshold, scale or SCALE, is_foreign=True)
