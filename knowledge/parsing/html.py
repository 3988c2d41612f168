"""HTML: the main part of a web page as Markdown."""

from markdownify import ATX, markdownify
from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.errors import Unreadable
from knowledge.parsing.decoding import decode
from knowledge.parsing.normalising import normalise
from knowledge.parsing.page import Page, as_date, as_language, as_list, as_text

MAIN = ("main article", "main", "article", "[role=main]", "body")
FURNITURE = (
    "script, style, noscript, template, svg, iframe, nav, aside, form, button, dialog, "
    "body > header, body > footer, main footer, [role=navigation], [role=banner], "
    "[role=contentinfo], [aria-hidden=true], [hidden]"
)


def parse(body: bytes) -> Page:
    """Return the page of an HTML file. Raises Unreadable."""
    text, warnings = decode(body)
    tree = LexborHTMLParser(text)
    title = text_of(tree, "title")
    tree.strip_tags(FURNITURE.split(", "))
    main = main_part(tree)
    heading = text_of(main, "h1")
    try:
        markdown = markdownify(main.html or "", heading_style=ATX, code_language="")
    except RecursionError as error:
        raise Unreadable("its elements are nested too deeply") from error
    return Page(
        content=normalise(markdown),
        title=heading or title,
        description=meta(tree, "description"),
        keywords=as_list(meta(tree, "keywords")),
        language=as_language(attribute(tree, "html", "lang")),
        last_updated=as_date(meta(tree, "last-modified")),
        warnings=warnings,
    )


def main_part(tree: LexborHTMLParser) -> LexborNode:
    """Return the element that holds what the page is about."""
    for selector in MAIN:
        found = tree.css_first(selector)
        if found is not None and found.text(strip=True):
            return found
    raise Unreadable("there is no text in it")


def text_of(tree: LexborHTMLParser | LexborNode, selector: str) -> str:
    """Return the text of the first such element; nothing when there is none."""
    found = tree.css_first(selector)
    return as_text(found.text(separator=" ")) if found is not None else ""


def meta(tree: LexborHTMLParser, name: str) -> str:
    """Return what the page's header says under that name."""
    return attribute(tree, f"meta[name={name}]", "content")


def attribute(tree: LexborHTMLParser, selector: str, name: str) -> str:
    """Return an attribute of the first such element; nothing when there is none."""
    found = tree.css_first(selector)
    return as_text(found.attributes.get(name)) if found is not None else ""
