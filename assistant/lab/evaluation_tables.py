"""Tables: the figures of evaluations for people, as tables and as bars."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from assistant.lab.judged_folder import Kept
from assistant.lab.parsing_quality import Row, means
from assistant.lab.retrieval import FUSED, METRICS, P50, Figures

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


TITLES = {
    "ndcg@10": "nDCG@10",
    "recall@5": "Recall@5",
    "recall@10": "Recall@10",
    "mrr@10": "MRR@10",
}
WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 1040, 440, 170
LEFT, TOP, RIGHT_PANEL, LOWER_PANEL = 56, 156, 500, 250
BAR, GAP = 30, 2
COLUMNS = 2
SHADES = (("#9aa9bd", "#5b6b82"), ("#7fb3a4", "#1f7a63"))  # of levels and of the fusion, by form
STYLE = """
text { font-family: system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1f2933 }
.title { font-size: 22px; font-weight: 600 } .note { font-size: 13px; fill: #616e7c }
.metric { font-size: 15px; font-weight: 600 } .level { font-size: 12px; fill: #3e4c59 }
.value { font-size: 10.5px; fill: #3e4c59; paint-order: stroke; stroke: #fff; stroke-width: 3px }
.grid { stroke: #e4e7eb; stroke-width: 1 }
.axis { stroke: #9aa5b1; stroke-width: 1 }
"""


def svg(figures: Figures, title: str) -> str:
    """Return the picture: a panel per metric, in it a group of bars per level, a bar per form.

    All panels share one scale, from 0 to the tenth above the highest bar.
    """
    height = TOP + LOWER_PANEL + PANEL_HEIGHT + 44
    top = highest(figures)
    panels = (
        line
        for number, metric in enumerate(METRICS)
        for line in panel(
            figures,
            metric,
            LEFT + RIGHT_PANEL * (number % COLUMNS),
            TOP + LOWER_PANEL * (number // COLUMNS),
            top,
        )
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(LEFT, 44, title, "title"),
        text(LEFT, 68, speeds(figures), "note"),
        *legend(list(figures)),
        *panels,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def highest(figures: Figures) -> float:
    """Return the upper end of the scale: a tenth above what is to be shown, at most 1."""
    values = [each[m] for levels in figures.values() for each in levels.values() for m in METRICS]
    return min(1.0, int(max(values, default=0.0) * 10 + 1) / 10)


def speeds(figures: Figures) -> str:
    """Return how long a search took, in a line."""
    of = [f"{levels[FUSED][P50]:.1f} ms ({form})" for form, levels in figures.items()]
    return "Documents at the rank of their best chunk. Median search: " + ", ".join(of)


def legend(forms: Sequence[str]) -> Iterator[str]:
    """Yield a key to the shades of the forms."""
    for number, form in enumerate(forms):
        x = LEFT + 100 * number
        yield rect(x, 86, 12, 12, SHADES[0][number])
        yield rect(x + 14, 86, 12, 12, SHADES[1][number])
        yield text(x + 34, 97, form, "level")


def panel(figures: Figures, metric: str, x: float, y: float, top: float) -> Iterator[str]:
    """Yield one metric's bars."""
    yield text(x, y - 14, TITLES[metric], "metric")
    for tick in range(round(top * 10) + 1):
        if tick % 2 == 0 or top <= 0.5:
            at = y + PANEL_HEIGHT * (1 - tick / 10 / top)
            kind = "grid" if tick else "axis"
            yield f'<line class="{kind}" x1="{x}" x2="{x + PANEL_WIDTH}" y1="{at:g}" y2="{at:g}"/>'
            yield text(x - 6, at + 4, f"{tick / 10:g}", "value", "end")
    levels = list(next(iter(figures.values())))
    for place, level in enumerate(levels):
        middle = x + PANEL_WIDTH * (place + 0.5) / len(levels)
        yield text(middle, y + PANEL_HEIGHT + 18, level, "level", "middle")
        values = [of[level][metric] for of in figures.values()]
        yield from group(values, middle, y, top, SHADES[level == FUSED])


def group(
    values: Sequence[float], middle: float, y: float, top: float, shades: Sequence[str]
) -> Iterator[str]:
    """Yield the bars of one level, a form each, with their values above."""
    begin = middle - (len(values) * (BAR + GAP) - GAP) / 2
    for number, value in enumerate(values):
        x, height = begin + number * (BAR + GAP), PANEL_HEIGHT * value / top
        yield rect(x, y + PANEL_HEIGHT - height, BAR, height, shades[number])
        label = f"{value:.3f}".lstrip("0") if value < 1 else "1"
        yield text(x + BAR / 2, y + PANEL_HEIGHT - height - 4, label, "value", "middle")


def rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    """Return a filled rectangle."""
    return (
        f'<rect x="{x:g}" y="{y:.2f}" width="{width:g}" height="{height:.2f}" rx="2" '
        f'fill="{fill}"/>'
    )


def text(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    """Return a line of text."""
    place = f'x="{x:g}" y="{y:.2f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(content)}</text>'
