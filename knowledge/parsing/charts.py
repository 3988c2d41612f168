"""Charts: the figures that Office charts and diagrams are drawn from, as lists."""

from itertools import zip_longest
from xml.etree.ElementTree import Element

from knowledge.parsing.tables import from_texts, sentences


def chart(root: Element) -> list[str]:
    """Return a chart as its title and a list with the values of each category."""
    series = [(texts(each, "tx"), each) for each in root.iterfind(".//{*}ser")]
    columns = [[" ".join(name), *texts(each, "val", "yVal")] for name, each in series]
    categories = next((found for _, each in series if (found := texts(each, "cat", "xVal"))), [])
    rows = zip_longest(["", *categories], *columns, fillvalue="")
    title = root.find("{*}chart/{*}title")
    said = "".join(each.text or "" for each in title.iterfind(".//{*}t")) if title else ""
    return [said, listed(sentences(from_texts(list(rows))))]


def texts(series: Element, *names: str) -> list[str]:
    """Return the values kept with the first part of a series that has one of these names."""
    for name in names:
        found = series.find(f"{{*}}{name}")
        if found is not None:
            return [each.text or "" for each in found.iterfind(".//{*}v")]
    return []


def diagram(root: Element) -> list[str]:
    """Return the texts of a diagram's nodes as a list."""
    nodes = ("".join(each.itertext()).strip() for each in root.iterfind(".//{*}pt/{*}t"))
    return [listed([" ".join(text.split()) for text in nodes if text])]


def listed(lines: list[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"- {line}" for line in lines)
