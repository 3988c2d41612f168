"""Retrieval chart: the figures of an evaluation of retrieval as bars, in SVG."""

from collections.abc import Iterator, Sequence
from html import escape

from assistant.lab.retrieval import FUSED, METRICS, P50, Figures

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
    values = [
        level[metric] for form in figures.values() for level in form.values() for metric in METRICS
    ]
    return min(1.0, int(max(values, default=0.0) * 10 + 1) / 10)


def speeds(figures: Figures) -> str:
    """Return how long a search took, in a line."""
    medians = [f"{levels[FUSED][P50]:.1f} ms ({form})" for form, levels in figures.items()]
    return "Documents at the rank of their best chunk. Median search: " + ", ".join(medians)


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
        values = [form[level][metric] for form in figures.values()]
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
