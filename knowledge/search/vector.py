"""Vector levels: chunks that lie near the question, or whose section or document does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding import Kind, Vectors, registry
from knowledge.embedding.local import SPREAD
from knowledge.errors import EmbeddingUnavailable
from knowledge.identifiers import LOCAL_MODEL, MULTILINGUAL_MODEL
from knowledge.search import sql, vector_indexes
from knowledge.search.explanation import Wording
from knowledge.search.fusion import Scores, unit
from knowledge.search.scope import Scope
from knowledge.search.sql import Query, Row, array_literal, one_transaction, rows, text_literal
from knowledge.search.vector_indexes import IndexKind

# What whoever asks is told of it: the particulars hold addresses of servers, nobody's business.
ONLY_WORDS = "Only words were compared: the embedding model could not be asked."
# Embedding model → vectors, a row per wording.
WordingVectors = dict[str, Vectors]


def encode(wordings: Sequence[Wording], names: Iterable[str]) -> tuple[WordingVectors, str]:
    """Return the vectors of the models that can be used, and why others cannot.

    No transaction may be open: a model behind an endpoint takes its time.
    """
    vectors: WordingVectors = {}
    errors = []
    for name in names if wordings else ():
        try:
            vectors[name] = encode_wordings(wordings, name)
        except EmbeddingUnavailable as error:
            errors.append(str(error))
    return vectors, f"Only words were compared: {' '.join(errors)}" if errors else ""


def encode_wordings(wordings: Sequence[Wording], name: str) -> Vectors:
    """Return a vector per wording. Raises EmbeddingUnavailable."""
    model = registry.named(name)
    vectors_by_place: dict[int, Vectors] = {}
    kinds: tuple[Kind, ...] = ("question", "passage")
    for kind in kinds:
        places = [place for place, each in enumerate(wordings) if kind_of(each) == kind]
        if places:
            texts = [wordings[place].text for place in places]
            vectors_by_place |= dict(zip(places, model.encode(texts, kind=kind), strict=True))
    return np.stack([vectors_by_place[place] for place in range(len(wordings))])


def kind_of(wording: Wording) -> Kind:
    """Return whether it asks, or answers and is compared as passages are."""
    return "passage" if wording.kind == "hyde" else "question"


# How many of each a walk finds.
LIMITS: dict[IndexKind, int] = {"chunk": 30, "document": 10}
# What names its nearest chunk when it is near itself. Sections would take longest to walk through,
# and on two judged collections they named nothing that counts: where a section is near, so is one
# of its chunks, or its document.
WHOLES: tuple[IndexKind, ...] = ("document",)
# Signs alone order vectors coarsely: this many times as many are compared in full.
COARSE = 4
# An exact comparison takes 1 µs; a walk through the index takes as long as 900 of them, longer in
# proportion when only one in so many of the vectors on its way is in scope. They cost the same
# where the scope is about the square root of 900 times all there is.
EXACTLY, WALK = 1000, 900

# What the largest number of a vector becomes, of the 65504 that half precision holds.
LONG = 30_000

# Model and collections are written into the text: a plan that is kept for any could not use the
# model's partial index, and would not know how many vectors are in scope.
NEAREST = """
SELECT {kind}_id AS id, distance FROM (
    SELECT {kind}_id, {distance} AS distance FROM knowledge_{kind}vector AS vector
    WHERE model = {model} AND collection_id = ANY('{collections}'){condition}
    ORDER BY {order} LIMIT {coarse}
) AS walked ORDER BY distance LIMIT {limit}
"""
# A subquery, so that it is asked of each vector on the way, and the walk goes no further than
# needed.
CONDITION = {
    "chunk": """
        AND (SELECT {condition} FROM knowledge_chunk AS part
            JOIN knowledge_document AS document ON document.id = part.document_id
            WHERE part.id = vector.chunk_id)""",
    "document": """
        AND (SELECT {condition} FROM knowledge_document AS document
            WHERE document.id = vector.document_id)""",
}
# Mostly the nearest chunk of what is near is among the nearest chunks itself.
CHUNK_OF = """
SELECT nearest.id FROM ({walk}) AS near, LATERAL (
    SELECT part.id FROM knowledge_chunk AS part
        JOIN knowledge_chunkvector AS vector ON vector.chunk_id = part.id AND model = %(model)s
    WHERE part.{kind}_id = near.id ORDER BY {distance} LIMIT 1
) AS nearest WHERE NOT EXISTS (SELECT FROM chunk WHERE chunk.{kind}_id = near.id)
"""
FIND = """
SELECT DISTINCT near.id FROM unnest(%(vectors)s::text[]::halfvec[]) AS asked (vector), LATERAL (
    WITH chunk AS MATERIALIZED (
        SELECT part.id, part.document_id
        FROM ({walk}) AS near JOIN knowledge_chunk AS part ON part.id = near.id
    )
    SELECT id FROM chunk{others}
) AS near
"""
ALONE = """
SELECT id FROM unnest(%(vectors)s::text[]::halfvec[]) AS asked (vector), LATERAL ({walk}) AS near
ORDER BY distance
"""


def ask(vectors: Vectors, sent: list[str], model: str, scope: Scope) -> Query:
    """Ask for the ids of the chunks near one of the vectors, by themselves or as part of something.

    `vectors`, (wordings, dimensions), are the model's, `sent` their `vector_literals`.
    """
    is_exact = is_small(scope)
    others = [
        CHUNK_OF.format(
            walk=nearest(kind, vectors, model, scope, exact=is_exact),
            kind=kind,
            distance=distance(vectors),
        )
        for kind in WHOLES
    ]
    statement = FIND.format(
        walk=nearest("chunk", vectors, model, scope, exact=is_exact),
        others="".join(f" UNION ALL ({each})" for each in others),
    )
    return Query(statement, scope.values | {"vectors": sent, "model": model})


def nearest_alone(
    kind: IndexKind, vectors: Vectors, model: str, scope: Scope, *, exact: bool = False
) -> list[int | str]:
    """Return the ids of the chunks or documents nearest to the first vector, in order.

    For measuring what the index finds beside what an `exact` comparison does.
    """
    walk = nearest(kind, vectors, model, scope, exact=exact)
    values = {"vectors": vector_literals(vectors[:1])}
    with one_transaction():
        query = Query(ALONE.format(walk=walk), scope.values | values)
    return [chunk_id for (chunk_id,) in query.rows()]


def nearest(kind: IndexKind, vectors: Vectors, model: str, scope: Scope, *, exact: bool) -> str:
    """Return the statement for the nearest of a kind; an exact one leaves the index alone."""
    dimensions, distance_sql = vectors.shape[1], distance(vectors)
    order, coarse = distance_sql, LIMITS[kind]
    if exact:
        order = f"({distance_sql}) + 0"
    elif dimensions > vector_indexes.LONGEST:
        question_signs = vector_indexes.signs(dimensions, "asked.vector")
        order = f"{vector_indexes.signs(dimensions)} <~> {question_signs}"
        coarse *= COARSE
    condition = CONDITION[kind].format(condition=scope.condition) if scope.condition else ""
    return NEAREST.format(
        kind=kind,
        model=text_literal(model).replace("%", "%%"),
        collections=array_literal(scope.models[model]),
        distance=distance_sql,
        order=order,
        coarse=coarse,
        limit=LIMITS[kind],
        condition=condition,
    )


def distance(vectors: Vectors) -> str:
    """Return the cosine distance to `asked.vector`; the cast is what the index is made over."""
    return f"embedding::halfvec({vectors.shape[1]}) <=> asked.vector"


def is_small(scope: Scope) -> bool:
    """Whether comparing with everything in scope is faster than walking through the index."""
    return scope.chunks <= EXACTLY or scope.chunks**2 <= WALK * scope.stored


def vector_literals(vectors: Vectors) -> list[str]:
    """Return the vectors as PostgreSQL reads them, at half precision.

    Longer, because whole numbers are written and read faster and only directions are compared.
    """
    longest = np.abs(vectors).max(axis=1, keepdims=True)
    whole = np.rint(vectors * (LONG / np.where(longest > 0, longest, 1.0))).astype(int)
    return [str(vector) for vector in whole.tolist()]


# Standard deviation of the cosine of two chunks of a collection with all-MiniLM-L6-v2, for which
# the weights were measured: 0.10 to 0.17 on five collections.
USUAL = 0.14
# Chunks that are compared; fewer say nothing.
MOST, FEWEST = 300, 50
# The same ones whenever they are asked for.
SAMPLE = """
SELECT halfvec_send(embedding) FROM knowledge_chunkvector WHERE model = %(model)s
ORDER BY hashint8extended(id, 0) LIMIT %(most)s::int
"""

# The others are measured; across languages a sample of passages does not tell.
KNOWN_SCALES = {LOCAL_MODEL: 1.0, MULTILINGUAL_MODEL: SPREAD}

_scales: dict[str, float] = {}


def scale(model: str) -> float:
    """Return what makes the model's cosines as different as the local model's; 1 if in doubt.

    Measured once in a process.
    """
    if model in KNOWN_SCALES:
        return KNOWN_SCALES[model]
    if model not in _scales:
        vectors_sent = [each for (each,) in rows(SAMPLE, {"model": model, "most": MOST})]
        if len(vectors_sent) < FEWEST:
            return 1.0
        vectors = sql.vectors(vectors_sent)
        cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
        _scales[model] = USUAL / max(float(cosines.std()), USUAL / 10)
    return _scales[model]


def forget() -> None:
    """Measure anew."""
    _scales.clear()


# A subquery, because a join would read every document. A section or document without a vector of
# the model lies where the chunk does.
PARTS = """
SELECT chunk.id, chunk.section_id, chunk.document_id,
    (SELECT collection_id FROM knowledge_document WHERE knowledge_document.id = chunk.document_id)
FROM knowledge_chunk AS chunk WHERE chunk.id = ANY(%(chunks)s::bigint[]) ORDER BY chunk.id
"""
VECTORS = """
SELECT chunk.id, chunk.section_id, chunk.document_id, coalesce(vector.collection_id, (
        SELECT collection_id FROM knowledge_document
        WHERE knowledge_document.id = chunk.document_id
    )),
    halfvec_send(vector.embedding), ARRAY(
        SELECT unnest(ARRAY[
            1 - (coalesce(of_section.embedding, vector.embedding) <=> asked),
            1 - (coalesce(of_document.embedding, vector.embedding) <=> asked)
        ]) FROM unnest(wording.vectors) AS asked
    )
FROM (SELECT %(vectors)s::text[]::halfvec[]) AS wording (vectors), knowledge_chunk AS chunk
    LEFT JOIN knowledge_chunkvector AS vector ON vector.chunk_id = chunk.id
        AND vector.model = %(model)s AND vector.collection_id = ANY(%(collections)s::bigint[])
    LEFT JOIN knowledge_sectionvector AS of_section
        ON of_section.section_id = chunk.section_id AND of_section.model = %(model)s
    LEFT JOIN knowledge_documentvector AS of_document
        ON of_document.document_id = chunk.document_id AND of_document.model = %(model)s
WHERE chunk.id = ANY(%(chunks)s::bigint[]) ORDER BY chunk.id
"""
# Relevance feedback, Rocchio 1971 ("The SMART Retrieval System", 14): the question moves towards
# the mean of its best three by this part of its length. Measured on five judged collections: 0.2
# to 0.5 and three to ten are about equally good.
BEST, STEP = 3, 0.3


@dataclass(frozen=True)
class Part:
    """A chunk, and what it is a part of."""

    chunk: int
    section: int
    document: str
    collection: int


@dataclass(frozen=True)
class Space:
    """The candidates that have a vector of one model; vectors of length 1, float32."""

    scale: float  # what makes its cosines as different as the local model's
    questions: Vectors  # a row per wording
    rows: NDArray[np.intp]  # places of these chunks among all candidates
    chunks: Vectors  # a row per chunk
    sections: Scores  # similarities, (wordings, chunks)
    documents: Scores

    def semantic(self) -> Scores:
        """Return how similar the chunks are to the wordings, (wordings, chunks)."""
        return (self.questions @ self.chunks.T).astype(np.float64)

    def moved(self, scores: Scores) -> Scores:
        """Return how similar they are to the wordings moved towards the best of all candidates."""
        best = np.argsort(-scores[self.rows], kind="stable")[:BEST]
        questions = unit(self.questions + STEP * self.chunks[best].mean(axis=0))
        return (questions @ self.chunks.T).astype(np.float64)

    def spread(self, similarities: Scores, candidates: int) -> Scores:
        """Return similarities as (wordings, candidates), NaN for the chunks of others."""
        spread = np.full((len(similarities), candidates), np.nan)
        spread[:, self.rows] = similarities
        return spread


def ask_space(
    chunks: Iterable[int], sent: Mapping[str, list[str]], models: Mapping[str, Sequence[int]]
) -> dict[str, Query]:
    """Ask where the chunks are, as each model sees them.

    `sent` holds the wordings' vectors of each model, as `vector_literals` gives them, `models` the
    collections whose vectors are of it. Without vectors, ask for the chunks alone.
    """
    values: dict[str, Any] = {"chunks": array_literal(chunks)}
    if not sent:
        return {"": Query(PARTS, values)}
    place = {
        model: {"model": model, "collections": array_literal(models[model]), "vectors": vectors}
        for model, vectors in sent.items()
    }
    return {model: Query(VECTORS, values | place[model]) for model in sent}


def parse_spaces(
    queries: Mapping[str, Query], vectors: WordingVectors
) -> tuple[list[Part], list[Space]]:
    """Return the chunks in the order of their ids, without those deleted meanwhile, and the spaces.

    A space that none of the chunks lies in is left out.
    """
    spaces = []
    for model, query in queries.items():
        stored_rows = query.rows()
        stored = {place: row[4:] for place, row in enumerate(stored_rows) if row[4:] and row[4]}
        if stored:
            spaces.append(space(model, vectors[model], stored))
    return [Part(*row[:4]) for row in stored_rows], spaces


def space(model: str, questions: Vectors, stored: Mapping[int, Row]) -> Space:
    """Return the space; `stored` holds by place each chunk's vector, as sent, and similarities."""
    sent, similarities = zip(*stored.values(), strict=True)
    sections, documents = np.array(similarities).reshape(len(sent), -1, 2).T
    return Space(
        scale=scale(model),
        questions=questions,
        rows=np.array([*stored], dtype=np.intp),
        chunks=sql.vectors(sent),
        sections=sections,
        documents=documents,
    )


def likeness(spaces: Sequence[Space], places: Sequence[int]) -> Vectors:
    """Return the cosine of each pair; 0 without vectors, or with those of different models."""
    alike = np.zeros((len(places), len(places)), dtype=np.float32)
    for space in spaces:
        members = np.flatnonzero(np.isin(places, space.rows))
        vectors = space.chunks[np.searchsorted(space.rows, np.asarray(places, dtype=int)[members])]
        alike[np.ix_(members, members)] = vectors @ vectors.T
    return alike
