"""PPTX: a presentation as Markdown, a heading for each slide.

Read from the elements themselves: the library for it brings 40 MB of others with it, and of all
it can do only walking these few elements would be used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from knowledge.errors import Unreadable
from knowledge.parsing.office import (
    Parts,
    as_list_items,
    chart,
    damage_as_unreadable,
    diagram,
    latex,
    parse_part,
    properties,
    relationship_id,
    relationships,
    unpack,
)
from knowledge.parsing.parsed_page import Limits, Page, assemble
from knowledge.parsing.tables import Cell, sentences

DECK = "ppt/presentation.xml"
TITLES = frozenset({"title", "ctrTitle"})
FURNITURE = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})
# Placeholders whose paragraphs have bullets unless they say otherwise.
BULLETED = frozenset({"body", "obj"})


@dataclass(frozen=True)
class Slide:
    """A slide as read."""

    title: str
    blocks: list[str]


def parse(body: bytes, limits: Limits) -> list[Page]:
    """Return the page of a presentation: all its slides. Raises Unreadable."""
    parts = unpack(body, limits)
    title, last_change = properties(parts)
    with damage_as_unreadable():
        names = slide_names(parts)
        if len(names) > limits.max_pages:
            raise Unreadable(
                f"it has {len(names):,} slides, more than {limits.max_pages:,} (PARSE_MAX_PAGES)"
            )
        slides = [(number, slide(parts, name)) for number, name in enumerate(names, start=1)]
    slides_with_text = [
        (number, content) for number, content in slides if content.title or any(content.blocks)
    ]
    content, starts = assemble(
        (number, [f"# {content.title or f'Slide {number}'}", *content.blocks])
        for number, content in slides_with_text
    )
    first = next((content.title for _, content in slides_with_text if content.title), "")
    return [Page(content, title=first or title, last_updated=last_change, starts=starts)]


def slide_names(parts: Parts) -> list[str]:
    """Return the parts that are slides, in the order they are shown."""
    targets = relationships(parts, DECK)
    ids = parse_part(parts, DECK).iterfind("{*}sldIdLst/{*}sldId")
    return [targets[relationship_id(slide_id)] for slide_id in ids]


def slide(parts: Parts, name: str) -> Slide:
    """Return one slide with its notes."""
    targets = relationships(parts, name)
    shapes = list(flatten(parse_part(parts, name).find("{*}cSld/{*}spTree")))
    titles = [shape for shape in shapes if placeholder(shape) in TITLES]
    title = " ".join(" ".join(paragraph_texts(shape)) for shape in titles)
    blocks = [
        block
        for shape in shapes
        if shape not in titles
        for block in shape_blocks(parts, targets, shape)
    ]
    return Slide(" ".join(title.split()), [*blocks, *notes(parts, targets)])


def flatten(group: Element | None) -> Iterator[Element]:
    """Yield the shapes of a group and of the groups within."""
    for shape in group if group is not None else ():
        name = local_name(shape)
        if name == "grpSp":
            yield from flatten(shape)
        elif name == "AlternateContent":
            yield from flatten(shape.find("{*}Choice"))
        else:
            yield shape


def local_name(element: Element) -> str:
    """Return an element's name without its namespace: there are two for everything."""
    return element.tag.rpartition("}")[2]


def placeholder(shape: Element) -> str:
    """Return what a shape holds the place of: "title", "body"; nothing for others."""
    element = shape.find("*/{*}nvPr/{*}ph")
    return element.get("type", "obj") if element is not None else ""


def shape_blocks(parts: Parts, targets: dict[str, str], shape: Element) -> Iterator[str]:
    """Yield what a shape says: a text, a table, a chart, a diagram."""
    if placeholder(shape) in FURNITURE:
        return
    table = shape.find(".//{*}tbl")
    drawing = shape.find("{*}graphic/{*}graphicData")
    if table is not None:
        yield as_list_items(sentences(list(table_rows(table))))
    elif drawing is not None:
        for graphic in drawing:
            if local_name(graphic) == "chart":
                yield from chart(parse_part(parts, targets[relationship_id(graphic)]))
            elif local_name(graphic) == "relIds":
                yield from diagram(parse_part(parts, targets[relationship_id(graphic, "dm")]))
    else:
        yield text_block(shape, has_bullets=placeholder(shape) in BULLETED)


def table_rows(table: Element) -> Iterator[list[Cell]]:
    """Yield the rows of a table; cells that others cover are left out."""
    about = table.find("{*}tblPr")
    has_headers = about is not None and about.get("firstRow") in {"1", "true"}
    for place, row in enumerate(table.iterfind("{*}tr")):
        yield [
            Cell(
                " ".join(" ".join(paragraph_texts(cell)).split()),
                is_header=has_headers and not place,
                rows=int(cell.get("rowSpan", 1)),
                columns=int(cell.get("gridSpan", 1)),
            )
            for cell in row.iterfind("{*}tc")
            if not {"1", "true"} & {cell.get("hMerge"), cell.get("vMerge")}
        ]


def paragraph_texts(element: Element) -> list[str]:
    """Return the texts of all paragraphs inside."""
    return [text_of(each).strip() for each in element.iterfind(".//{*}txBody/{*}p")]


def text_block(shape: Element, *, has_bullets: bool = False) -> str:
    """Return a shape's paragraphs, those with bullets or numbers as lists."""
    text_so_far = ""
    was_item = False
    for paragraph in shape.iterfind("{*}txBody/{*}p"):
        mark, text = bullet(paragraph, has_bullets=has_bullets), text_of(paragraph).strip()
        if text:
            text_so_far += ("\n" if was_item and mark else "\n\n") + mark + text
            was_item = bool(mark)
    return text_so_far.strip("\n")


def bullet(paragraph: Element, *, has_bullets: bool) -> str:
    """Return what a paragraph begins with: its place in a list, or nothing."""
    about = paragraph.find("{*}pPr")
    marks = {local_name(each) for each in about} if about is not None else set()
    if "buNone" in marks or not (has_bullets or marks & {"buChar", "buAutoNum", "buBlip"}):
        return ""
    level = int(about.get("lvl", 0)) if about is not None else 0
    return "  " * level + ("1. " if "buAutoNum" in marks else "- ")


def text_of(paragraph: Element) -> str:
    """Return the text of a paragraph, equations too."""
    text = ""
    for child in paragraph:
        match local_name(child):
            case "r" | "fld":
                text += child.findtext("{*}t") or ""
            case "br":
                text += "\n"
            case "m":
                text += "".join(f"${latex(equation).strip()}$" for equation in child)
            case "AlternateContent":
                choice = child.find("{*}Choice")
                text += text_of(choice) if choice is not None else ""
    return text


def notes(parts: Parts, targets: dict[str, str]) -> Iterator[str]:
    """Yield what the speaker's notes say."""
    for name in targets.values():
        if name.startswith("ppt/notesSlides/") and name in parts:
            for shape in flatten(parse_part(parts, name).find("{*}cSld/{*}spTree")):
                text = text_block(shape) if placeholder(shape) == "body" else ""
                if text:
                    yield f"Notes:\n\n{text}"
