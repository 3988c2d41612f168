"""DOCX: a Word document as Markdown, by way of the HTML that mammoth makes of it."""

import re
from collections.abc import Sequence
from io import BytesIO
from itertools import groupby
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring
from zipfile import ZipFile

from mammoth import convert_to_html
from mammoth.documents import Document, Paragraph, Run, Text
from mammoth.html import text as words
from mammoth.transforms import get_descendants_of_type

from knowledge.parsing.markup import markdown
from knowledge.parsing.office import (
    M,
    Parts,
    damage_as_unreadable,
    latex,
    parse_part,
    properties,
    unpack,
)
from knowledge.parsing.outline import title
from knowledge.parsing.parsed_page import Limits, Page

CODE = "Docent Code"
CODE_STYLES = (CODE, "Code", "Code Block", "Source Code", "HTML Preformatted", "Preformatted Text")
STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='heading {level}'] => h6:fresh" for level in (7, 8, 9)),
        *(f"p[style-name='toc {level}'] => !" for level in range(1, 10)),
        *(f"p[style-name='{name}'] => pre:separator('\\n')" for name in CODE_STYLES),
    ]
)
MONOSPACED = re.compile(r"courier|consolas|menlo|monaco|mono\b|monospace|fira code", re.IGNORECASE)
CODE_SIGNS = re.compile(r"[(){}\[\];=<>$|\\]|://")
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"


def parse(body: bytes, limits: Limits) -> list[Page]:
    """Return the page of a Word document. Raises Unreadable."""
    parts = unpack(body, limits)
    file_title, last_change = properties(parts)
    with damage_as_unreadable():
        html = convert_to_html(
            repack(parts),
            style_map=STYLES,
            transform_document=mark_code,
            convert_image=alt_text,
            include_embedded_style_map=False,
        ).value
    content = markdown(html)
    return [Page(content, title=title(content, file_title), last_updated=last_change)]


def repack(parts: Parts) -> BytesIO:
    """Return the parts as an archive again, equations written as text."""
    archive = BytesIO()
    with ZipFile(archive, "w") as file:
        for name, xml in parts.items():
            has_equations = name.startswith("word/") and b"oMath" in xml
            file.writestr(name, with_equations_as_text(parts, name) if has_equations else xml)
    return archive


def with_equations_as_text(parts: Parts, name: str) -> bytes:
    """Return a part with runs of text where equations were."""
    root = parse_part(parts, name)
    space = STRICT if root.tag.startswith(STRICT) else W
    for parent in list(root.iter()):
        for place, child in enumerate(parent):
            if child.tag in {f"{M}oMath", f"{M}oMathPara"}:
                parent[place] = equation_run(child, space)
    return tostring(root)


def equation_run(equation: Element, space: str) -> Element:
    """Return the run that says what an equation says."""
    sign = "$$" if equation.tag == f"{M}oMathPara" else "$"
    element = Element(f"{space}r")
    lines = [latex(each) for each in equation.iter(f"{M}oMath")]
    SubElement(element, f"{space}t").text = " ".join(
        f"{sign}{line.strip()}{sign}" for line in lines
    )
    element.tail = equation.tail
    return element


def alt_text(image: Any) -> Sequence[Any]:
    """Return what a picture is described as, and nothing of the picture."""
    return [words(f" {image.alt_text} ")] if image.alt_text else []


def mark_code(document: Document) -> Document:
    """Return the document with monospaced paragraphs marked as code where they look like it."""
    children: list[Any] = []
    for is_code_font, group in groupby(document.children, key=is_monospaced):
        paragraphs = list(group)
        if is_code_font and CODE_SIGNS.search("\n".join(map(text_of, paragraphs))):
            paragraphs = [
                paragraph.copy(style_id=None, style_name=CODE, numbering=None)
                for paragraph in paragraphs
            ]
        children += paragraphs
    return document.copy(children=children)


def is_monospaced(element: Any) -> bool:
    """Tell whether all text of a paragraph is in a font for code."""
    if not isinstance(element, Paragraph):
        return False
    runs = [each for each in get_descendants_of_type(element, Run) if text_of(each).strip()]
    return bool(runs) and all(MONOSPACED.search(each.font or "") for each in runs)


def text_of(element: Any) -> str:
    """Return the text inside an element of the document."""
    return "".join(each.value for each in get_descendants_of_type(element, Text))
