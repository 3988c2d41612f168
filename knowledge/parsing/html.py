"""HTML: the main part of a web page as Markdown."""

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.errors import Unreadable
from knowledge.parsing.charsets import declared
from knowledge.parsing.decoding import decode
from knowledge.parsing.limits import Limits
from knowledge.parsing.markup import markdown
from knowledge.parsing.page import Page, as_date, as_language, as_list, as_text
from knowledge.parsing.trail import VISIBLE, above, crumbs

# Pages are not nested half as deeply; beyond it time grows with the square.
DEEPEST = 250
# Where a page keeps what it is about, the surest first; taken when there is only one of it.
MAIN = (
    "main article",
    "main",
    "[role=main]",
    "article",
    "#main-content, #content, .markdown-body",
    "body",
)
FURNITURE = (
    "script, style, noscript, template, svg, iframe, nav, button, dialog, input, select, textarea, "
    "body > header, body > footer, main footer, [role=navigation], [role=banner], "
    "[role=contentinfo], [role=search], [aria-hidden=true], [hidden], .headerlink, .sr-only"
)


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of an HTML file. Raises Unreadable."""
    return [page(body)]


def page(body: bytes) -> Page:
    """Return the page. Raises Unreadable."""
    text, warnings = decode(body, declared(body))
    tree = LexborHTMLParser(text)
    refuse_depth(tree)
    title, trail = text_of(tree, "title"), crumbs(tree)
    tree.strip_tags(f"{FURNITURE}, {VISIBLE}".split(", "))
    strip_doubtful(tree)
    main = main_part(tree)
    heading = text_of(main, "h1")
    return Page(
        content=markdown(main.html or ""),
        title=heading or title,
        crumbs=above(trail, heading, title),
        description=meta(tree, "description"),
        keywords=as_list(meta(tree, "keywords")),
        language=as_language(attribute(tree, "html", "lang")),
        last_updated=as_date(meta(tree, "last-modified")),
        warnings=warnings,
    )


def refuse_depth(tree: LexborHTMLParser) -> None:
    """Raise Unreadable when elements are nested more deeply than in any page."""
    node, depth = tree.root, 0
    while node is not None:
        if depth > DEEPEST:
            raise Unreadable("its elements are nested too deeply")
        if node.child is not None:
            node, depth = node.child, depth + 1
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        node = node.next if node is not None else None


def strip_doubtful(tree: LexborHTMLParser) -> None:
    """Take away sidebars and forms: a form around the whole page stays, and so does a remark."""
    whole = length(tree.body)
    for node in tree.css("aside, form"):
        links = sum(length(link) for link in node.css("a"))
        if node.tag == "aside" and 2 * links <= length(node):
            continue
        if node.tag == "form" and 2 * length(node) >= whole:
            continue
        node.decompose()


def length(node: LexborNode | None) -> int:
    """Return how much text is inside."""
    return len(node.text(strip=True)) if node is not None else 0


def main_part(tree: LexborHTMLParser) -> LexborNode:
    """Return the element that holds what the page is about."""
    for selector in MAIN:
        found = tree.css(selector)
        if len(found) == 1 and length(found[0]):
            return found[0]
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
