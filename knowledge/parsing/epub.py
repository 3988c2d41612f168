"""EPUB: a book as one page, its chapters in the order of reading."""

from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from knowledge.errors import Unreadable
from knowledge.parsing import html
from knowledge.parsing.office import DUBLIN, Parts, damage_as_unreadable, parse_part, unpack
from knowledge.parsing.outline import headings
from knowledge.parsing.parsed_page import Limits, Page, as_date, as_language, as_text

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
XML = (".xml", ".opf", ".ncx")
ENDINGS = (*XML, ".xhtml", ".html", ".htm")


def parse(body: bytes, limits: Limits) -> list[Page]:
    """Return the book. Raises Unreadable.

    https://www.w3.org/TR/epub-33/ says how a book is packed.
    """
    parts = unpack(body, limits, kept=ENDINGS, declared_nothing=XML)
    with damage_as_unreadable():
        container = parse_part(parts, CONTAINER)
        package_name = container.find(".//{*}rootfile[@full-path]").get("full-path", "")  # type: ignore[union-attr]
        package = parse_part(parts, package_name)
        names = reading_order(package, dirname(package_name))
        refuse_encrypted(parts, names)
    if len(names) > limits.max_pages:
        raise Unreadable(f"it has more than {limits.max_pages:,} chapters (PARSE_MAX_PAGES)")
    title = said(package, "title")
    chapters = [text for name in names if name in parts and (text := chapter(parts[name], title))]
    return [
        Page(
            "\n\n".join(chapters),
            title=title,
            description=said(package, "description"),
            keywords=[as_text(each.text) for each in package.iterfind(f".//{DUBLIN}subject")],
            language=as_language(said(package, "language")),
            last_updated=as_date(modified(package) or said(package, "date")),
        )
    ]


def reading_order(package: Element, folder: str) -> list[str]:
    """Return the names of the chapters in the archive, without the table of contents."""
    manifest = {
        item.get("id", ""): unquote(item.get("href", ""))
        for item in package.iterfind("{*}manifest/{*}item")
        if "nav" not in item.get("properties", "").split()
    }
    references = package.iterfind("{*}spine/{*}itemref")
    hrefs = (
        manifest.get(each.get("idref", ""), "") for each in references if each.get("linear") != "no"
    )
    return list(dict.fromkeys(normpath(join(folder, href)) for href in hrefs if href))


def refuse_encrypted(parts: Parts, names: list[str]) -> None:
    """Raise Unreadable when chapters are encrypted; that of fonts is common and no matter."""
    if ENCRYPTION not in parts:
        return
    references = parse_part(parts, ENCRYPTION).iterfind(".//{*}CipherReference")
    if {unquote(each.get("URI", "")) for each in references} & {*names}:
        raise Unreadable("it is protected against copying: its chapters are encrypted")


def said(package: Element, name: str) -> str:
    """Return what the book says about itself under that name of the Dublin Core."""
    return as_text(package.findtext(f".//{DUBLIN}{name}"))


def modified(package: Element) -> str:
    """Return when the book was changed."""
    metas = package.iterfind("{*}metadata/{*}meta[@property='dcterms:modified']")
    return next((as_text(each.text) for each in metas), "")


def chapter(body: bytes, book: str) -> str:
    """Return a chapter's text under a heading; nothing when there is none in it."""
    try:
        page = html.page(body)
    except Unreadable:
        return ""
    has_heading = not page.content or headings(page.content)
    is_named = page.title and page.title != book
    return page.content if has_heading or not is_named else f"# {page.title}\n\n{page.content}"
