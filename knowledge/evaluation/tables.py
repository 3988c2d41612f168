"""Tables: the figures of evaluations for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from knowledge.evaluation.keeping import Kept
from knowledge.evaluation.parsing import Row, means
from knowledge.evaluation.retrieval import FUSED, METRICS, P50, Figures

NOTHING = "-"


def of_retrieval(figures: Figures, title: str, kept: Kept) -> RenderableType:
    """Return a block per form, a line per level; the best of a column in bold."""
    table = Table("", "", *METRICS, "p50 ms", title=title, title_justify="left")
    for column in table.columns[2:]:
        column.justify = "right"
    for form, levels in figures.items():
        best = {metric: max(each[metric] for each in levels.values()) for metric in METRICS}
        for place, (level, each) in enumerate(levels.items()):
            values = [
                f"[bold]{each[metric]:.3f}[/]" if each[metric] == best[metric] else
                f"{each[metric]:.3f}"
                for metric in METRICS
            ]  # fmt: skip
            style = "green" if level == FUSED else None
            table.add_row(
                form if not place else "", level, *values, f"{each[P50]:.1f}", style=style
            )
        table.add_section()
    lines = [f"Collection {kept.collection}: {kept.added:,} passages taken in by this run."]
    if kept.unfindable:
        lines.append(f"{kept.unfindable:,} passages hold too little text to be found by.")
    return Group(table, *lines)


def of_answerability(figures: dict[str, Any]) -> RenderableType:
    """Return how well the two kinds of questions are parted."""
    unable = figures["questions"] - figures["answerable"]
    table = Table(
        "no_context", "precision", "recall", "F1",
        title=f"{figures['questions']} questions, {unable} of them without an answer",
        title_justify="left",
    )  # fmt: skip
    for name, row in (("as it is said", "no_context"), ("at best", "best")):
        values = [shown(figures[row][each]) for each in ("precision", "recall", "f1")]
        table.add_row(name, *values)
    thresholds = ", ".join(map(shown, figures["thresholds"]))
    return Group(
        table,
        f"Area under the curve of the confidence: {shown(figures['auc'])}",
        f"Threshold: {thresholds}; at best {figures['best']['shift']:+.3f}",
    )


def of_golden(figures: Mapping[str, Mapping[str, float | None]]) -> RenderableType:
    """Return a line per collection."""
    table = Table("collection", "questions", "recall@5", "recall@10")
    for name, each in figures.items():
        values = [shown(each["recall@5"]), shown(each["recall@10"])]
        table.add_row(name, str(each["questions"]), *values)
    return table


def of_parsing(rows: Sequence[Row]) -> RenderableType:
    """Return the means per format, then every file, then what was refused and why."""
    table = Table(
        "format", "file", "words", "in order", "headings", "more", title_justify="left",
        title="Similarity to what was expected, 0 to 1",
    )  # fmt: skip
    for row in means(rows):
        table.add_row(*cells(row), style="bold")
    table.add_section()
    refused = []
    for row in rows:
        if row.refused:
            refused.append(f"Refused, {row.format}/{row.name}: {row.refused}")
        else:
            table.add_row(*cells(row))
    return Group(table, *refused)


def cells(row: Row) -> list[str]:
    """Return one line of the table of files."""
    found = NOTHING if row.headings is None else f"{row.headings_found} of {row.headings}"
    more = NOTHING if row.headings_more is None else str(row.headings_more)
    return [row.format, row.name, shown(row.f1), shown(row.ratio), found, more]


def shown(value: float | None) -> str:
    """Return a figure with three digits."""
    return NOTHING if value is None else f"{value:.3f}"
