"""Search box: tries a question, and shows what every level thought of every candidate."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from knowledge.api.search_api import RESULTS_LIMIT, SearchQuery, looked_up
from knowledge.errors import KnowledgeError
from knowledge.models import Chunk, Collection
from knowledge.search import Beside, Found, neighbours
from knowledge.search.explanation import Considered, Explanation

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
    candidate: Considered
    marks: list[tuple[str, list[Mark]]]  # by level
    width: int  # of its fused score, in per cent of the best
    cosine_width: int
    link: str
    by: int | None  # row of the chunk that was preferred
    beside: Beside | None  # what stands around a passage


def searched(given: QueryDict) -> dict[str, Any]:
    """Return what the page of the search box shows for a query."""
    context: dict[str, Any] = {
        "names": Collection.objects.values_list("name", "title"),
        "chosen": given.getlist("collection"),
        "given": given,
        "most": RESULTS_LIMIT,
    }
    if "q" not in given:
        return context
    query = SearchQuery(data={**given.dict(), "collection": given.getlist("collection")})
    if not query.is_valid():
        return context | {"errors": {name: plain(said) for name, said in query.errors.items()}}
    try:
        found = looked_up(query.validated_data | {"explain": True})
    except KnowledgeError as error:
        return context | {"errors": {"collection": [str(error)]}}
    return context | shown(found)


def plain(problems: Any) -> list[str]:
    """Return what was wrong with a field; of one that may be repeated, with any of its values."""
    if isinstance(problems, dict):
        return [said for inner in problems.values() for said in plain(inner)]
    return [str(said) for said in problems]


def shown(found: Found) -> dict[str, Any]:
    """Return the result with its explanation as rows: those to be shown, and those to be folded."""
    context: dict[str, Any] = {"found": found}
    if found.explain is not None:
        considered = rows(found.explain)
        telling = [row.number for row in considered if row.candidate.dropped not in MANY]
        weighed = max(telling, default=len(considered))
        context |= {
            "wordings": found.explain.wordings,
            "strong": STRONG,
            "fair": FAIR,
            "weights": [(level, found.explain.weights.get(level)) for level in LEVELS],
            "weighed": considered[:weighed],
            "others": considered[weighed:],
        }
    return context


def rows(explanation: Explanation) -> list[Row]:
    """Return the candidates as rows, each linked to its chunk and to what was preferred to it."""
    candidates = explanation.candidates
    places = {each.chunk_id: number for number, each in enumerate(candidates, start=1)}
    chunks = Chunk.objects.filter(pk__in=places).values_list("pk", "number")
    numbers = dict(chunks)
    beside = neighbours(each.chunk_id for each in candidates if each.place)
    best = max((each.score for each in candidates), default=0.0) or 1.0
    return [
        Row(
            number=places[each.chunk_id],
            candidate=each,
            marks=[(level, marks(each, level)) for level in LEVELS],
            width=round(100 * max(each.score, 0.0) / best),
            cosine_width=round(100 * max(each.cosine or 0.0, 0.0)),
            link=address(each.document_id, numbers.get(each.chunk_id, 1)),
            by=places.get(each.by) if each.by else None,
            beside=beside.get(each.chunk_id),
        )
        for each in candidates
    ]


def marks(candidate: Considered, level: str) -> list[Mark]:
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


def address(document: str, number: int) -> str:
    """Return where the chunk with that number is shown."""
    page = reverse("admin:knowledge_document_change", args=[document])
    return f"{page}?chunk={number}#chunk-{number}"
