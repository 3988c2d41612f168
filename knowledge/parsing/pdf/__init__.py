"""PDF: the text of its pages as Markdown, put together again from where the letters stand."""

import re
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from itertools import islice

import pypdfium2 as pdfium
from pypdfium2 import raw

from knowledge.errors import Unreadable
from knowledge.parsing.office import NAMELESS
from knowledge.parsing.parsed_page import Limits, Page, as_date, assemble
from knowledge.parsing.pdf.bombs import refuse_endless
from knowledge.parsing.pdf.layout import Line, lines_of, without_furniture
from knowledge.parsing.pdf.structure import Headings, Outline, Writer, blocks, body_size, key
from knowledge.parsing.pdf.vertical import is_incomplete, is_vertical, vertical_lines

BOOKMARKS = 10_000
# The share of signs that stand for nothing above which a text is none.
SENSELESS = 0.3
SENSE = re.compile(r"[\w\s!-~]")


def parse(body: bytes, limits: Limits) -> list[Page]:
    """Return the page of a PDF: all of its pages. Raises Unreadable."""
    if not body.strip():
        raise Unreadable("it is empty")
    refuse_endless(body, limits)
    with closing(open_document(body)) as document:
        count = len(document)
        if count > limits.max_pages:
            raise Unreadable(
                f"it has {count:,} pages, more than {limits.max_pages:,} (PARSE_MAX_PAGES)"
            )
        pages, doubtful = lines_by_page(document, body)
        bookmarks, (title, last_change) = outline(document), properties(document)
    refuse_senseless(pages)
    body_pages = without_furniture(pages, body_size(line for page in pages for line in page))
    lines = [line for page in body_pages for line in page]
    headings = Headings(lines, bookmarks)
    structure = blocks(lines, headings)
    content, starts = assemble(Writer(lines).pages(structure))
    heading = next((block for block in structure if block.kind == "heading"), None)
    heading_text = " ".join(line.text for line in heading.lines) if heading else ""
    return [
        Page(
            content,
            title=title or heading_text,
            last_updated=last_change,
            starts=starts,
            warnings=unread_warnings(pages, doubtful),
        )
    ]


def open_document(body: bytes) -> pdfium.PdfDocument:
    """Return the document. Raises Unreadable."""
    try:
        return pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise Unreadable("it is protected by a password: save it without one") from error
        raise Unreadable("it is damaged, or no PDF") from error


def lines_by_page(document: pdfium.PdfDocument, body: bytes) -> tuple[list[list[Line]], list[int]]:
    """Return the lines of each page, none for one that cannot be loaded.

    And the numbers of those that seem to hold text which nothing here can read.
    """
    pages: list[list[Line]] = []
    vertical: list[int] = []
    incomplete: list[int] = []
    for number in range(1, len(document) + 1):
        try:
            page = document[number - 1]
        except pdfium.PdfiumError:
            pages.append([])
            continue
        with closing(page):
            pages.append(lines_of(page, number))
            if lost := is_incomplete(page, pages[-1]):
                incomplete.append(number)
            if lost or is_vertical(pages[-1]):
                vertical.append(number)
    columns = vertical_lines(body, vertical) if vertical else {}
    read = [columns.get(number, lines) for number, lines in enumerate(pages, start=1)]
    return read, [number for number in incomplete if number not in columns]


def outline(document: pdfium.PdfDocument) -> Outline:
    """Return the bookmarks: (page, words of the title) → level."""
    levels: Outline = {}
    for bookmark in islice(document.get_toc(), BOOKMARKS):
        target = bookmark.get_dest()
        place = target.get_index() if target else None
        if place is not None and key(bookmark.get_title()):
            levels.setdefault((place + 1, key(bookmark.get_title())), bookmark.level + 1)
    return levels


def properties(document: pdfium.PdfDocument) -> tuple[str, date | None]:
    """Return the title and the last change that the file names, where it does."""
    about = document.get_metadata_dict()
    title = " ".join(about["Title"].split())
    if title.lower().startswith(NAMELESS) or re.search(r"\.\w{2,5}$", title):
        title = ""
    day = re.match(r"D:(\d{4})(\d\d)(\d\d)", about["ModDate"] or about["CreationDate"])
    return title, as_date("-".join(day.groups())) if day else None


def refuse_senseless(pages: Sequence[Sequence[Line]]) -> None:
    """Raise Unreadable when there is no text, or none that means anything."""
    text = "".join(line.text for page in pages for line in page)
    if not text:
        raise Unreadable(
            "it has no text, only pictures of pages: run text recognition (OCR) over it first"
        )
    if len(SENSE.findall(text)) < (1 - SENSELESS) * len(text):
        raise Unreadable("its fonts don't say which letters they show: run OCR over it first")


def unread_warnings(pages: Sequence[Sequence[Line]], doubtful: Sequence[int]) -> list[str]:
    """Return warnings that name the pages without text, and those that may hold more of it."""
    empty = [number for number, page in enumerate(pages, start=1) if not page]
    some = [number for number in doubtful if number not in empty]
    texts = [("no text", empty), ("text that could not be read", some)]
    return [
        f"{what} on {len(numbers)} of {len(pages)} pages: {named(numbers)}"
        for what, numbers in texts
        if numbers
    ]


def named(numbers: Sequence[int]) -> str:
    """Return the first numbers of pages as a text."""
    return ", ".join(map(str, numbers[:10])) + (" and others" if len(numbers) > 10 else "")
