"""Markup: HTML elements as Markdown that reads as text, nothing of what they say lost."""

import re
from collections.abc import Iterator
from dataclasses import replace

from bs4 import BeautifulSoup, Tag
from markdownify import ATX, MarkdownConverter

from knowledge.parsing.normalization import ABSOLUTE, clean_characters, collapse_blank_lines
from knowledge.parsing.tables import WIDEST, Cell, sentences

# Signs that only lead to the place they stand at.
ANCHORS = frozenset({"#", "¶", "§", "🔗", "↑", "⚓", ""})
LANGUAGE = re.compile(r"(?:lang(?:uage)?|highlight(?:-source)?)-([\w+#]+)")
POWER = re.compile(r"[+\u2212-]?(?:\d+|[nk])")
ITEM = re.compile(r"\s*\n\s*(?:[*+-]|\d+\.) ")
FENCE = re.compile(r"^ *`{3,}", re.MULTILINE)
# A longer cell is a part of the page and not an entry.
LONGEST_CELL = 1500
BLOCKS = ["h1", "h2", "h3", "h4", "pre", "table", "ul", "ol"]
BOLD = re.compile(r"\*\*.+\*\*")
HEADER = re.compile(r"(?=.*[^\W\d_]).{1,60}")  # short, and with a letter in it
Context = set[str]  # the names of the elements around one


class Converter(MarkdownConverter):
    """Turns elements into Markdown: tables as lists, links and pictures as words."""

    def __init__(self) -> None:
        super().__init__(heading_style=ATX, escape_asterisks=False, escape_underscores=False)
        self.cells: dict[int, str] = {}  # text of each table cell, by the id of its element

    def convert_a(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Keep the address of what lies elsewhere."""
        href = str(el.get("href") or "").strip()
        label = " ".join(text.split())
        if "_noformat" in parent_tags or not ABSOLUTE.match(href) or label in {href, ""}:
            return "" if label in ANCHORS else text
        if "_inline" in parent_tags or "\n" not in text.strip():
            return f"[{label}]({href.split()[0]})"
        return text

    def convert_img(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Keep what a picture is described as."""
        return " ".join(str(el.get("alt") or "").split())

    def convert_input(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Tell what is ticked."""
        return (
            ("[x] " if el.has_attr("checked") else "[ ] ") if el.get("type") == "checkbox" else ""
        )

    def convert_pre(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Keep the lines of code, whatever elements they are made of."""
        code = code_lines(el)
        if "_inline" in parent_tags:
            return f"`{' '.join(code.split())}`" if code.strip() else ""
        fence = "`" * max(
            [3, *(len(fence_of_code.strip()) + 1 for fence_of_code in FENCE.findall(code))]
        )
        return f"\n\n{fence}{language(el)}\n{code}\n{fence}\n\n" if code.strip() else ""

    def convert_sup(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Tell ten to the sixth from a hundred and six."""
        return f"^{text}" if POWER.fullmatch(text) and not el.find("a") else text

    def convert_dt(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Make a term an item of a list."""
        term = " ".join(text.split())
        return f"\n- {term}:\n" if term else ""

    def convert_dd(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Put the definition under its term."""
        lines = text.strip().split("\n")
        return "".join(f"  {line}\n" if line else "\n" for line in lines)

    def convert_td(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Keep the text for the table."""
        self.cells[id(el)] = " ".join(ITEM.sub(", ", text.strip()).split())
        return ""

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Leave rows to the table, and what wrongly stands between them in place."""
        return text

    def convert_table(self, el: Tag, text: str, parent_tags: Context) -> str:
        """Make each row a sentence of a list."""
        rows = [
            [self.cell(each) for each in own_elements(row, "td", "th")]
            for row in own_elements(el, "tr")
        ]
        lines = sentences(with_headers(rows))
        if "_inline" in parent_tags:
            return f" {' | '.join(lines)} "
        items = "".join(f"- {sentence}\n" for sentence in lines)
        return f"\n\n{text.strip()}\n\n{items}\n"

    def cell(self, el: Tag) -> Cell:
        """Return a cell of the table."""
        around = el.find_parent(["thead", "table"])
        return Cell(
            self.cells.get(id(el), ""),
            is_header=el.name == "th" or (around is not None and around.name == "thead"),
            rows=span(el, "rowspan"),
            columns=span(el, "colspan"),
        )


def markdown(html: str) -> str:
    """Return HTML as Markdown. Raises RecursionError when elements are nested too deeply."""
    soup = BeautifulSoup(html, "html.parser")
    for table in soup.find_all("table"):
        if is_layout(table):
            unwrap(table)
    return collapse_blank_lines(clean_characters(Converter().convert_soup(soup)))


def own_elements(el: Tag, *tag_names: str) -> Iterator[Tag]:
    """Yield the elements of these names inside, but not those of a table within."""
    for child in el.children:
        if isinstance(child, Tag):
            if child.name in tag_names:
                yield child
            elif child.name != "table":
                yield from own_elements(child, *tag_names)


def is_layout(table: Tag) -> bool:
    """Tell whether a table only places parts of a page beside each other."""
    rows = [list(own_elements(row, "td", "th")) for row in own_elements(table, "tr")]
    if table.get("role") == "presentation":
        return True
    if table.find("th") is None and all(len(row) < 2 for row in rows):
        return True
    if len(rows) == 1 and table.find(BLOCKS):
        return True
    return any(len(cell.get_text()) > LONGEST_CELL for row in rows for cell in row)


def unwrap(table: Tag) -> None:
    """Make a table's cells parts of the page; the numbers beside lines of code go."""
    for cell in (
        cell for row in own_elements(table, "tr") for cell in own_elements(row, "td", "th")
    ):
        if "linenos" in (cell.get("class") or []):
            cell.clear()
        cell.name = "div"
    table.name = "div"


def with_headers(rows: list[list[Cell]]) -> list[list[Cell]]:
    """Return the rows with the first as headers where it looks like that and no cell says so."""
    if len(rows) < 2 or any(cell.is_header for row in rows for cell in row):
        return rows
    first, second = ([cell.text for cell in row] for row in rows[:2])
    if all(map(BOLD.fullmatch, first)) and not all(map(BOLD.fullmatch, second)):
        first = [text.strip("*") for text in first]
    elif len(first) < 3 or not all(map(HEADER.fullmatch, first)) or len(set(first)) < len(first):
        return rows
    headers = [
        replace(cell, text=text, is_header=True) for cell, text in zip(rows[0], first, strict=True)
    ]
    return [headers, *rows[1:]]


def span(el: Tag, name: str) -> int:
    """Return how many rows or columns a cell covers."""
    value = str(el.get(name) or "")
    return max(1, min(WIDEST, int(value))) if value.isascii() and value.isdigit() else 1


def code_lines(pre: Tag) -> str:
    """Return the text of a code block; lines may be elements of their own."""
    for el in pre.find_all(["br", "div", "p", "li"]):
        if el.name == "br" or not el.get_text().endswith("\n"):
            el.append("\n")
    return pre.get_text().strip("\r\n").rstrip()


def language(pre: Tag) -> str:
    """Return the language that a code block or what surrounds it is marked with."""
    around = [*pre.find_all("code")[:1], pre, *list(pre.parents)[:2]]
    for el in around:
        for name in [*(el.get("class") or []), f"language-{el.get('data-language') or ''}"]:
            if match := LANGUAGE.fullmatch(name):
                return match[1]
    return ""
