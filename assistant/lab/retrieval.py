"""Retrieval: how well each level of search, and what it makes of them, finds what is relevant.

Asked are the questions of a judged folder, or the golden questions of a collection.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from time import perf_counter

from django.conf import settings
from rich.console import Group, RenderableType
from rich.table import Table

from assistant.lab.judged_data import JudgedCollection, Question, Unjudgeable
from assistant.lab.measures import Grades, digits, ndcg, recall, reciprocal_rank
from knowledge import golden
from knowledge.search import SearchResult, search

LEVELS = ("keyword", "semantic", "hierarchical", "summary")
STATEMENTS = {"keyword": "keyword"}  # the others share one, and its time
FUSED = "fused"
METRICS: Mapping[str, Callable[[Sequence[str], Grades], float]] = {
    "ndcg@10": lambda ranking, grades: ndcg(ranking, grades, 10),
    "recall@5": lambda ranking, grades: recall(ranking, grades, 5),
    "recall@10": lambda ranking, grades: recall(ranking, grades, 10),
    "mrr@10": lambda ranking, grades: reciprocal_rank(ranking, grades, 10),
}
DEEPEST = 10  # documents that any metric looks at
MOST_PASSAGES = 200
P50 = "p50_ms"

Figures = dict[str, dict[str, dict[str, float]]]  # form → level → metric
Watch = Callable[[int, int], None]  # told how many questions are asked, of how many


@dataclass
class Series:
    """What one level did with the questions of one form."""

    values: dict[str, list[float]] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)

    def add(self, ranking: Sequence[str], grades: Grades, milliseconds: float) -> None:
        """Add one question."""
        for name, metric in METRICS.items():
            self.values.setdefault(name, []).append(metric(ranking, grades))
        self.milliseconds.append(milliseconds)

    def means(self) -> dict[str, float]:
        """Return the mean of each metric, and the median of the milliseconds."""
        figures = {name: round(fmean(values), 4) for name, values in self.values.items()}
        return figures | {P50: round(median(self.milliseconds), 2)}


def evaluate(collection: JudgedCollection, watch: Watch | None = None) -> Figures:
    """Return nDCG@10, Recall@5, Recall@10 and MRR@10 of each level and of search as a whole.

    Results count by document, at the rank of its best chunk. A level alone is the order in which
    it names chunks; `fused` is the order in which a user's search returns passages, one chunk per
    section: asked for as many as it weighs against each other, and for more until ten documents
    are there. MMR, which chooses when fewer are asked for, leaves none of those out. Milliseconds
    are medians without the time to embed the question: of a level its own, of `fused` the whole
    search. Raises Unjudgeable when the question cannot be embedded.
    """
    identifiers = collection.identifiers()
    forms, questions = collection.folder.forms, collection.folder.questions
    figures: Figures = {}
    for number, form in enumerate(forms):
        series = {level: Series() for level in (*LEVELS, FUSED)}
        for place, question in enumerate(questions, start=1):
            grades = collection.folder.grades[question.id]
            ask(question, form, collection, identifiers, grades, series)
            if watch:
                watch(number * len(questions) + place, len(forms) * len(questions))
        figures[form] = {level: values.means() for level, values in series.items()}
    return figures


def ask(
    question: Question,
    form: str,
    collection: JudgedCollection,
    identifiers: Mapping[str, str],
    grades: Grades,
    series: Mapping[str, Series],
) -> None:
    """Search for one question and add what every level found."""
    begin = perf_counter()
    text, language = question.form(form), question.language
    results = search(text, collections=[collection.name], spoken=language)
    milliseconds = (perf_counter() - begin) * 1000
    if results.error:
        raise Unjudgeable(results.error)
    times = results.stats["ms"]
    deep = search_deeply(text, collection.name, language)
    series[FUSED].add(
        named([passage.document_id for passage in deep.passages], identifiers),
        grades,
        milliseconds - times["embedding"],
    )
    for level in LEVELS:
        names = named(ranking(deep, level), identifiers)
        series[level].add(names, grades, times[STATEMENTS.get(level, "vectors")])


def search_deeply(question: str, collection: str, language: str) -> SearchResult:
    """Return a search with passages of ten documents, if there are as many."""
    limit = settings.SEARCH_FETCH_K
    while True:
        results = search(
            question, collections=[collection], limit=limit, spoken=language, explain=True
        )
        documents = {passage.document_id for passage in results.passages}
        exhausted = len(results.passages) < limit or limit >= MOST_PASSAGES
        if exhausted or len(documents) >= DEEPEST:
            return results
        limit *= 2


def ranking(results: SearchResult, level: str) -> list[str]:
    """Return the documents as a level names their chunks for the question itself, best first."""
    if results.explain is None:
        return []
    ranks = [
        (standing.rank, candidate.document_id)
        for candidate in results.explain.candidates
        for standing in candidate.standings
        if standing.level == level and standing.wording == 0
    ]
    return [document for _, document in sorted(ranks)]


def named(documents: Sequence[str], identifiers: Mapping[str, str]) -> list[str]:
    """Return each document once, as it is called in the corpus; others by their own name."""
    return [identifiers.get(document, document) for document in dict.fromkeys(documents)]


def table(figures: Figures, title: str, collection: JudgedCollection) -> RenderableType:
    """Return a block per form, a line per level; the best of a column in bold."""
    rows = Table("", "", *METRICS, "p50 ms", title=title, title_justify="left")
    for column in rows.columns[2:]:
        column.justify = "right"
    for form, levels in figures.items():
        best = {metric: max(level[metric] for level in levels.values()) for metric in METRICS}
        for place, (level, values) in enumerate(levels.items()):
            cells = [
                f"[bold]{values[metric]:.3f}[/]" if values[metric] == best[metric] else
                f"{values[metric]:.3f}"
                for metric in METRICS
            ]  # fmt: skip
            style = "green" if level == FUSED else None
            name = form if place == 0 else ""
            rows.add_row(name, level, *cells, f"{values[P50]:.1f}", style=style)
        rows.add_section()
    lines = [f"Collection {collection.name}: {collection.added:,} passages taken in by this run."]
    if collection.unfindable:
        lines.append(f"{collection.unfindable:,} passages hold too little text to be found by.")
    return Group(rows, *lines)


def golden_table(figures: Mapping[str, Mapping[str, float]]) -> RenderableType:
    """Return a line per collection."""
    columns = [f"recall@{depth}" for depth in golden.DEPTHS]
    rows = Table("collection", "questions", *columns)
    for name, values in figures.items():
        rows.add_row(name, str(values["questions"]), *(digits(values[key]) for key in columns))
    return rows
