"""Comparison tools: what documents say beside each other, and how well passages bear a statement.

None of them asks a model: what they give is near, named or worded alike, and no verdict.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from statistics import fmean
from typing import Annotated

import numpy as np
from pydantic import Field

from agents.analysis import evidence as evidence_ids
from agents.analysis.document_tools import (
    KEYWORD,
    MOST,
    SECONDS,
    Name,
    PassageId,
    Query,
    Wanted,
    document_named,
    finding,
    given_to,
    in_reach,
    look_for,
)
from agents.analysis.shapes import Evidence
from agents.documentation.citations.particulars import Particulars
from agents.documentation.passages import with_heading
from agents.names import Role
from agents.tools.tool import Arguments, Caller, Finding, RefusedArguments, tool
from agents.words import stem, terms
from knowledge.embedding import Vectors, registry, similarities
from knowledge.errors import EmbeddingUnavailable
from knowledge.graph import graph_search as relations_of
from knowledge.identifiers import MULTILINGUAL_MODEL
from knowledge.language import surely
from knowledge.models import ChunkVector, Document
from knowledge.norms import definitions
from knowledge.search import passages_of
from knowledge.search.confidence import EXCELLENT

# Chunks of a document that are compared; pairs, and passages of one document alone, that are given.
MOST_COMPARED, USUAL_PAIRS, MOST_ALONE = 400, 5, 4
# Two chunks whose cosine is below this say nothing of each other. Of all-MiniLM-L6-v2.
NEAR = 0.5
MOST_RELATIONS = 20
# How many passages are read for definitions of a term.
READ = 10
NOT_SUPPORT = "Near is not the same as true: read the passages."


class Two(Arguments):
    """Which two documents."""

    first: Name = Field(description="id, title or source of a document")
    second: Name = Field(description="id, title or source of another one")
    about: Annotated[Name, Field(max_length=300)] = Field(
        default="", description="what the comparison is about, as a phrase; empty: everything"
    )
    limit: int = Field(
        default=USUAL_PAIRS, ge=1, le=MOST, description=f"pairs; usually {USUAL_PAIRS}"
    )


class Asked(Arguments):
    """What relations are asked for."""

    query: Query = Field(description="a question that names things, or one name alone")
    at: Annotated[str, Field(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = Field(
        default="", description="only what holds on this day, as YYYY-MM-DD; empty: at any time"
    )


class Term(Arguments):
    """Which term."""

    term: Annotated[Query, Field(max_length=100)] = Field(description="a term, as documents use it")


class Claim(Arguments):
    """A statement, and what is to support it."""

    statement: Query = Field(description="one whole sentence")
    passages: list[PassageId] = Field(
        min_length=1, max_length=MOST, description="ids of the passages that are to support it"
    )


@tool(roles=[Role.RISK_VERIFIER], timeout=SECONDS, told=evidence_ids.as_told)
def compare_documents(arguments: Two, caller: Caller) -> Finding:
    """Match the passages of two documents: what both speak of, and what only one has."""
    with in_reach():
        first = document_named(arguments.first, caller)
        second = document_named(arguments.second, caller)
    if first == second:
        raise RefusedArguments(f"Both are the same document, {first.title!r}: name two.")
    model = _common_model(first, second)
    (ids, ours), (others, theirs) = _vectors(first, model), _vectors(second, model)
    alike = ours @ theirs.T
    weight = _about(arguments.about, model, ours, theirs)
    pairs = [
        (row, column)
        for row, column in enumerate(alike.argmax(axis=1).tolist())
        if alike[:, column].argmax() == row and alike[row, column] >= NEAR
    ]
    pairs.sort(key=lambda each: -float(weight[each] if arguments.about else alike[each]))
    only_first = [ids[row] for row in np.flatnonzero(alike.max(axis=1) < NEAR)][:MOST_ALONE]
    only_second = [others[row] for row in np.flatnonzero(alike.max(axis=0) < NEAR)][:MOST_ALONE]
    chosen = pairs[: arguments.limit]
    shown = [chunk for row, column in chosen for chunk in (ids[row], others[column])]
    passages = passages_of([*shown, *only_first, *only_second])
    names = {each.chunk_id: evidence_ids.of_passage(each).id for each in passages}
    texts = {each.chunk_id: " ".join(each.text.split()) for each in passages}
    return finding(
        passages,
        pairs=[
            {
                "first": names.get(ids[row]),
                "second": names.get(others[column]),
                "similarity": round(float(alike[row, column]), 3),
                "same_words": texts.get(ids[row]) == texts.get(others[column]),
            }
            for row, column in chosen
        ],
        pairs_left_out=len(pairs) - len(chosen),
        only_in_first=[names[each] for each in only_first if each in names],
        only_in_second=[names[each] for each in only_second if each in names],
    )


def _common_model(first: Document, second: Document) -> str:
    """Return the embedding model that compares the two. Raises RefusedArguments."""
    models = [_models_of(each) for each in (first, second)]
    common = models[0] & models[1]
    usual = [each.collection.embedding_model for each in (first, second)]
    is_foreign = first.language.partition("-")[0] != second.language.partition("-")[0]
    for model in [MULTILINGUAL_MODEL, *usual] if is_foreign else usual:
        if model in common:
            return model
    raise RefusedArguments(
        f"{first.title!r} and {second.title!r} have no vectors of the same model to be compared by."
    )


def _models_of(document: Document) -> set[str]:
    rows = ChunkVector.objects.filter(chunk__document=document)
    return set(rows.order_by().values_list("model", flat=True).distinct())


def _vectors(document: Document, model: str) -> tuple[list[int], Vectors]:
    """Return the first chunks of a document with their vectors, each of length 1."""
    rows = ChunkVector.objects.filter(chunk__document=document, model=model)
    stored = rows.order_by("chunk__number").values_list("chunk", "embedding")[:MOST_COMPARED]
    ids, vectors = zip(*stored, strict=True)
    table = np.array(vectors, dtype=np.float32)
    return list(ids), table / np.linalg.norm(table, axis=1, keepdims=True)


def _about(subject: str, model: str, ours: Vectors, theirs: Vectors) -> Vectors:
    """Return how near each pair is to a subject; nothing where none is named, or none is known."""
    if not subject:
        return np.zeros((len(ours), len(theirs)), dtype=np.float32)
    try:
        (asked,) = registry.named(model).encode([subject], kind="question")
    except EmbeddingUnavailable as error:
        raise RefusedArguments("Meanings cannot be compared now: leave `about` empty.") from error
    return np.asarray((ours @ asked)[:, np.newaxis] + (theirs @ asked)[np.newaxis])


@tool(
    roles=[Role.REQUIREMENT_EXTRACTOR, Role.COMPLIANCE, Role.GAP_SYNTHESIZER],
    timeout=SECONDS,
    retries=1,
    critical=True,
    told=evidence_ids.as_told,
)
def graph_search(arguments: Asked, caller: Caller) -> Finding:
    """Find how things are related: who does what, what refers to what, and when it holds."""
    try:
        day = date.fromisoformat(arguments.at) if arguments.at else None
    except ValueError as error:
        raise RefusedArguments(f"There is no day {arguments.at}.") from error
    with in_reach():
        found = relations_of(
            arguments.query,
            collections=caller.collections,
            languages=caller.languages,
            audience=caller.audience,
            documents=caller.documents,
            at=day,
            limit=MOST_RELATIONS,
        )
    passages = passages_of(list(dict.fromkeys(each.chunk_id for each in found))[:MOST])
    names = {each.chunk_id: evidence_ids.of_passage(each).id for each in passages}
    relations = [
        {
            "subject": each.subject,
            "predicate": each.predicate,
            "object": each.object,
            "from": each.valid_from.isoformat() if each.valid_from else None,
            "to": each.valid_to.isoformat() if each.valid_to else None,
            "passage": names.get(each.chunk_id),
        }
        for each in found
    ]
    return finding(passages, relations=relations)


@tool(roles=[Role.REQUIREMENT_EXTRACTOR], timeout=SECONDS, told=evidence_ids.as_told)
def definition_aligner(arguments: Term, caller: Caller) -> Finding:
    """Find where documents define a term, and whether they define it alike."""
    wanted = Wanted(query=f"definition: {arguments.term}", limit=READ)
    by_words = look_for(
        wanted.model_copy(update={"query": arguments.term}), caller, weights=KEYWORD
    )
    found = {
        each.chunk_id: each for each in (*look_for(wanted, caller).passages, *by_words.passages)
    }
    rows = [
        {"passage": evidence_ids.of_passage(passage).id, "document": passage.title,
         "term": each.term, "wording": each.text}
        for passage in found.values()
        for each in definitions(passage.text, passage.language)
        if _is_same(each.term, arguments.term)
    ]  # fmt: skip
    defining = {row["passage"] for row in rows}
    passages = [each for each in found.values() if evidence_ids.of_passage(each).id in defining]
    titles = {row["document"] for row in rows}
    using = {each.title for each in found.values() if _is_used(arguments.term, each.text)}
    return finding(
        passages,
        definitions=rows,
        are_alike=_likeness([row["wording"] for row in rows]),
        used_without_definition=sorted(using - titles),
    )


def _is_same(term: str, other: str) -> bool:
    return [stem(word) for word in term.casefold().split()] == [
        stem(word) for word in other.casefold().split()
    ]


def _is_used(term: str, text: str) -> bool:
    return set(terms(term)) <= set(terms(text))


def _likeness(wordings: Sequence[str]) -> float | None:
    """Return the lowest cosine between two wordings of a definition; None for fewer than two."""
    distinct = list(dict.fromkeys(" ".join(each.split()) for each in wordings))
    if len(wordings) < 2:
        return None
    if len(distinct) < 2:
        return 1.0
    try:
        nearest = [float(min(similarities(each, distinct, is_foreign=False))) for each in distinct]
    except EmbeddingUnavailable:
        return None
    return round(min(nearest), 3)


@tool(roles=[Role.COMPLIANCE], timeout=SECONDS, told=evidence_ids.as_told)
def assess_confidence(arguments: Claim, caller: Caller) -> Finding:
    """Measure how well passages bear a statement: nearness, agreement, what they do not name."""
    given = given_to(caller)
    named = evidence_ids.named(arguments.passages, given)
    if named.invented:
        raise RefusedArguments(
            f"No tool gave {', '.join(named.invented)}. Name passages by ids that a tool gave."
        )
    statement = arguments.statement
    chosen = [given[each] for each in named.known]
    searched = look_for(Wanted(query=statement, limit=MOST), caller)
    ranks = {evidence_ids.of_passage(p).id: n for n, p in enumerate(searched.passages, start=1)}
    cosines = _cosines(statement, chosen)
    lacking = Particulars([_read(each) for each in chosen]).lacks(statement)
    confidence, threshold = (searched.stats.get(name) for name in ("confidence", "threshold"))
    above = None if confidence is None or threshold is None else confidence - threshold
    near = [each for each, cosine in zip(chosen, cosines, strict=True) if (cosine or 0.0) >= NEAR]
    is_found = any(each.id in ranks for each in chosen)
    assessed = {
        "support": _level(above, is_found=is_found, is_lacking=bool(lacking)),
        "certainty": searched.stats.get("certainty"),
        "above_threshold": None if above is None else round(above, 3),
        "documents_near": len({each.document_id for each in near}),
        "mean_cosine": _mean(cosines),
        "not_named_by_passages": lacking,
        "assessed": [
            {"passage": each.id, "cosine": cosine, "rank_in_search": ranks.get(each.id)}
            for each, cosine in zip(chosen, cosines, strict=True)
        ],
        "note": NOT_SUPPORT,
    }
    return Finding({evidence_ids.PASSAGES: [], **assessed})


def _level(above: float | None, *, is_found: bool, is_lacking: bool) -> str:
    """Return how well search supports a statement; `above` is over the collection's threshold."""
    if is_lacking or not is_found or (above is not None and above < 0):
        return "low"
    return "high" if above is not None and above >= EXCELLENT else "medium"


def _cosines(statement: str, chosen: Sequence[Evidence]) -> list[float | None]:
    spoken = surely(statement)
    is_foreign = bool(spoken) and all(each.language.partition("-")[0] != spoken for each in chosen)
    try:
        found = similarities(statement, [_read(each) for each in chosen], is_foreign=is_foreign)
    except EmbeddingUnavailable:
        return [None] * len(chosen)
    return [round(float(each), 3) for each in found]


def _read(evidence: Evidence) -> str:
    (reference,) = evidence_ids.references([evidence])
    return with_heading(reference)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return round(fmean(known), 3) if known else None
