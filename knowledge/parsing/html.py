"""HTML: the main part of a web page as Markdown, and the breadcrumbs that lead to it."""

import json
import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.errors import Unreadable
from knowledge.parsing.encoding import declared_charset, decode
from knowledge.parsing.markup import markdown
from knowledge.parsing.parsed_page import Limits, Page, as_date, as_language, as_list, as_text

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
    text, warnings = decode(body, declared_charset(body))
    tree = LexborHTMLParser(text)
    refuse_depth(tree)
    title, trail = text_of(tree, "title"), breadcrumbs(tree)
    tree.strip_tags(f"{FURNITURE}, {TRAILS}".split(", "))
    strip_sidebars(tree)
    main = main_part(tree)
    heading = text_of(main, "h1")
    return Page(
        content=markdown(main.html or ""),
        title=heading or title,
        crumbs=without_own_crumb(trail, heading, title),
        description=meta_content(tree, "description"),
        keywords=as_list(meta_content(tree, "keywords")),
        language=as_language(attribute(tree, "html", "lang")),
        last_updated=as_date(meta_content(tree, "last-modified")),
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


def strip_sidebars(tree: LexborHTMLParser) -> None:
    """Take away sidebars and forms: a form around the whole page stays, and so does a remark."""
    whole = text_length(tree.body)
    for node in tree.css("aside, form"):
        links = sum(text_length(link) for link in node.css("a"))
        if node.tag == "aside" and 2 * links <= text_length(node):
            continue
        if node.tag == "form" and 2 * text_length(node) >= whole:
            continue
        node.decompose()


def text_length(node: LexborNode | None) -> int:
    """Return how much text is inside."""
    return len(node.text(strip=True)) if node is not None else 0


def main_part(tree: LexborHTMLParser) -> LexborNode:
    """Return the element that holds what the page is about."""
    for selector in MAIN:
        elements = tree.css(selector)
        if len(elements) == 1 and text_length(elements[0]):
            return elements[0]
    raise Unreadable("there is no text in it")


def text_of(tree: LexborHTMLParser | LexborNode, selector: str) -> str:
    """Return the text of the first such element; nothing when there is none."""
    element = tree.css_first(selector)
    return as_text(element.text(separator=" ")) if element is not None else ""


def meta_content(tree: LexborHTMLParser, name: str) -> str:
    """Return what the page's header says under that name."""
    return attribute(tree, f"meta[name={name}]", "content")


def attribute(tree: LexborHTMLParser, selector: str, name: str) -> str:
    """Return an attribute of the first such element; nothing when there is none."""
    element = tree.css_first(selector)
    return as_text(element.attributes.get(name)) if element is not None else ""


MOST, LONGEST = 8, 100  # crumbs, and characters of one
DATA = "script[type='application/ld+json']"
DATA_LENGTH = 100_000  # characters: what is longer is more than a few links
MICRODATA = "[itemtype$='schema.org/BreadcrumbList']"
TRAILS = (
    "[aria-label*=breadcrumb i], nav.breadcrumb, nav.breadcrumbs, ol.breadcrumb, ol.breadcrumbs, "
    "ul.breadcrumb, ul.breadcrumbs, ul.wy-breadcrumbs, div.breadcrumb, div.breadcrumbs"
)
# What no reader takes for a part of it, and the page itself.
INVISIBLE = (
    "script, style, svg, template, [hidden], [aria-hidden=true], [aria-current=page], .sr-only, "
    ".visually-hidden, .wy-breadcrumbs-aside"
)
# Where it is text and not drawn by a style sheet.
SEPARATORS = "/\\|>:-\u203a\u00bb\u2192\u00b7\u2022\u276f\u25b8\u25ba\u2013\u2014 "
HOME = frozenset({"home", "homepage", "start", "startseite", "accueil", "inicio", "главная"})
SITE = re.compile(
    r"\s+[|\u2013\u2014\u00b7\u2022\u00bb-]\s+"
)  # between a title and its site's name


def breadcrumbs(tree: LexborHTMLParser) -> list[str]:
    """Return the names from the site's first page down to this one, or to the one above it.

    They are those that are stated for machines, or the links a reader sees; at most eight.
    Changes the tree: within the links, what no reader sees is gone then.
    """
    for names in (*json_ld_trails(tree), *microdata_trails(tree), *visible_trails(tree)):
        texts_of_crumbs = (as_text(name).strip(SEPARATORS)[:LONGEST] for name in names)
        if trail := list(dropwhile(is_home, (name for name in texts_of_crumbs if name))):
            return trail[:MOST]
    return []


def is_home(name: str) -> bool:
    """Tell whether a crumb names the first page of every site."""
    return name.casefold() in HOME


def without_own_crumb(names: list[str], *titles: str) -> list[str]:
    """Return the crumbs without the page's own, which is called as one of its titles."""
    own = {part.casefold() for title in titles for part in (title, SITE.split(title)[0])}
    return names[:-1] if names and names[-1].casefold() in own else names


def json_ld_trails(tree: LexborHTMLParser) -> Iterator[list[str]]:
    """Yield the names of each BreadcrumbList in JSON-LD (https://schema.org/BreadcrumbList)."""
    for node in tree.css(DATA):
        text = node.text()
        if "BreadcrumbList" not in text or len(text) > DATA_LENGTH:
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for breadcrumb_list in breadcrumb_lists(data):
            yield item_names(breadcrumb_list.get("itemListElement"))


def breadcrumb_lists(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the breadcrumb lists of a script, which may lie in lists, graphs and pages."""
    values = [data]
    for value in values:  # which grow meanwhile
        if isinstance(value, list):
            values += value
        elif isinstance(value, dict):
            if "BreadcrumbList" in str(value.get("@type")):
                yield value
            values += [value.get("@graph"), value.get("breadcrumb")]


def item_names(items: Any) -> list[str]:
    """Return the names of list items, in the order of their positions where all have one."""
    entries = [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    places = [str(each.get("position")) for each in entries]
    if all(place.isascii() and place.isdigit() and len(place) < LONGEST for place in places):
        entries.sort(key=lambda each: int(each["position"]))
    return [as_text(each.get("name")) or item_name(each.get("item")) for each in entries]


def item_name(item: Any) -> str:
    """Return the name of the page that a list item leads to."""
    return as_text(item.get("name")) if isinstance(item, dict) else ""


def microdata_trails(tree: LexborHTMLParser) -> Iterator[list[str]]:
    """Yield the names of each BreadcrumbList in microdata."""
    for node in tree.css(MICRODATA):
        yield [
            as_text(name.attributes.get("content")) or name.text(separator=" ")
            for name in node.css("[itemprop~=name]")
        ]


def visible_trails(tree: LexborHTMLParser) -> Iterator[list[str]]:
    """Yield the names in each trail of links: its items, or its links where it is no list."""
    for node in tree.css(TRAILS):
        for element in node.css(INVISIBLE):
            element.decompose()
        items = texts(node, "li")
        yield items if any(items) else texts(node, "a")


def texts(node: LexborNode, selector: str) -> list[str]:
    """Return the texts of the elements within."""
    return [each.text(separator=" ") for each in node.css(selector)]
