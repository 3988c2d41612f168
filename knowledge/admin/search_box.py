"""Search box: tries a question, and shows what every level thought of every candidate."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from knowledge.api.search_api import RESULTS_LIMIT, SearchQuery, run_search
from knowledge.errors import KnowledgeError
from knowledge.models import Chunk, Collection, Document
from knowledge.search import SearchResult, Surroundings, neighbours
from knowledge.search.explanation import ConsideredChunk, Explanation

LEVELS = ("keyword", "semantic", "hierarchical", "summary")
# Below the last candidate that did not fall for one of these reasons there is little to learn.
MANY = ("fetch", "section", "filter")
# Ranks from which on a level is taken to agree a little less, as the colours show it.
STRONG, FAIR = 3, 10


@dataclass(frozen=True)
class Mark:
    """The rank a level gave a candidate for one wording."""

    wording: int
    rank: int
    score: float
    strength: str  # strong, fair or faint


@dataclass(frozen=True)
class Row:
    """A candidate as the table shows it."""

    number: int
    candidate: ConsideredChunk
    marks: list[tuple[str, list[Mark]]]  # by level
    width: int  # of its fused score, in per cent of the best
    cosine_width: int
    link: str
    by: int | None  # row of the chunk that was preferred
    beside: Surroundings | None  # what stands around a passage


def search_context(form: QueryDict) -> dict[str, Any]:
    """Return what the page of the search box shows for a query."""
    context: dict[str, Any] = {
        "names": Collection.objects.values_list("name", "title"),
        "chosen": form.getlist("collection"),
        "given": form,
        "most": RESULTS_LIMIT,
    }
    if "q" not in form:
        return context
    # The turn in which the same was asked stands beside the question.
    asked = form.copy()
    asked.pop("asked", None)
    query = SearchQuery(data=asked)
    if not query.is_valid():
        errors = {name: error_messages(problems) for name, problems in query.errors.items()}
        return context | {"errors": errors}
    try:
        result = run_search(query.validated_data | {"explain": True})
    except KnowledgeError as error:
        return context | {"errors": {"collection": [str(error)]}}
    return context | result_context(result) | {"sources": sources_of(result)}


def sources_of(result: SearchResult) -> list[dict[str, Any]]:
    """Return the documents of the passages, best first, to be ticked as answers."""
    ids = list(dict.fromkeys(passage.document_id for passage in result.passages))
    rows = Document.objects.filter(pk__in=ids).values("pk", "title", "source", "collection__name")
    by_id: dict[str, dict[str, Any]] = {row["pk"]: dict(row) for row in rows}
    return [by_id[each] for each in ids if each in by_id]


def error_messages(errors: Any) -> list[str]:
    """Return what was wrong with a field; of one that may be repeated, with any of its values."""
    if isinstance(errors, dict):
        return [message for inner in errors.values() for message in error_messages(inner)]
    return [str(message) for message in errors]


def result_context(result: SearchResult) -> dict[str, Any]:
    """Return the result with its explanation as rows: those to be shown, and those to be folded."""
    context: dict[str, Any] = {"found": result}
    if result.explain is not None:
        table_rows = rows(result.explain)
        informative = [row.number for row in table_rows if row.candidate.dropped not in MANY]
        weighed = max(informative, default=len(table_rows))
        context |= {
            "wordings": result.explain.wordings,
            "strong": STRONG,
            "fair": FAIR,
            "weights": [(level, result.explain.weights.get(level)) for level in LEVELS],
            "weighed": table_rows[:weighed],
            "others": table_rows[weighed:],
        }
    return context


def rows(explanation: Explanation) -> list[Row]:
    """Return the candidates as rows, each linked to its chunk and to what was preferred to it."""
    candidates = explanation.candidates
    places = {candidate.chunk_id: number for number, candidate in enumerate(candidates, start=1)}
    chunks = Chunk.objects.filter(pk__in=places).values_list("pk", "number")
    numbers = dict(chunks)
    beside = neighbours(candidate.chunk_id for candidate in candidates if candidate.place)
    best = max((candidate.score for candidate in candidates), default=0.0) or 1.0
    return [
        Row(
            number=places[candidate.chunk_id],
            candidate=candidate,
            marks=[(level, marks(candidate, level)) for level in LEVELS],
            width=round(100 * max(candidate.score, 0.0) / best),
            cosine_width=round(100 * max(candidate.cosine or 0.0, 0.0)),
            link=chunk_link(candidate.document_id, numbers.get(candidate.chunk_id, 1)),
            by=places.get(candidate.by) if candidate.by else None,
            beside=beside.get(candidate.chunk_id),
        )
        for candidate in candidates
    ]


def marks(candidate: ConsideredChunk, level: str) -> list[Mark]:
    """Return the ranks that a level gave, the question's first."""
    return [
        Mark(each.wording, each.rank, each.score, strength(each.rank))
        for each in sorted(candidate.standings, key=lambda each: each.wording)
        if each.level == level
    ]


def strength(rank: int) -> str:
    """Return how much a rank counts, in a word."""
    if rank <= STRONG:
        return "strong"
    return "fair" if rank <= FAIR else "faint"


def chunk_link(document: str, number: int) -> str:
    """Return where the chunk with that number is shown."""
    page = reverse("admin:knowledge_document_change", args=[document])
    return f"{page}?chunk={number}#chunk-{number}"
