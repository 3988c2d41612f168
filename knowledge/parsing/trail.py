"""Trail: where a web page lies within its site, as its breadcrumbs have it."""

import json
import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from knowledge.parsing.page import as_text

MOST, LONGEST = 8, 100  # crumbs, and characters of one
DATA = "script[type='application/ld+json']"
DATA_LENGTH = 100_000  # characters: what is longer is more than a few links
MICRODATA = "[itemtype$='schema.org/BreadcrumbList']"
VISIBLE = (
    "[aria-label*=breadcrumb i], nav.breadcrumb, nav.breadcrumbs, ol.breadcrumb, ol.breadcrumbs, "
    "ul.breadcrumb, ul.breadcrumbs, ul.wy-breadcrumbs, div.breadcrumb, div.breadcrumbs"
)
# What no reader takes for a part of it, and the page itself.
LEFT_OUT = (
    "script, style, svg, template, [hidden], [aria-hidden=true], [aria-current=page], .sr-only, "
    ".visually-hidden, .wy-breadcrumbs-aside"
)
# Where it is text and not drawn by a style sheet.
SEPARATORS = "/\\|>:-\u203a\u00bb\u2192\u00b7\u2022\u276f\u25b8\u25ba\u2013\u2014 "
HOME = frozenset({"home", "homepage", "start", "startseite", "accueil", "inicio", "главная"})
SITE = re.compile(
    r"\s+[|\u2013\u2014\u00b7\u2022\u00bb-]\s+"
)  # between a title and its site's name


def crumbs(tree: LexborHTMLParser) -> list[str]:
    """Return the names from the site's first page down to this one, or to the one above it.

    They are those that are stated for machines, or the links a reader sees; at most eight.
    Changes the tree: within the links, what no reader sees is gone then.
    """
    for names in (*stated(tree), *marked_up(tree), *seen(tree)):
        shown = (as_text(name).strip(SEPARATORS)[:LONGEST] for name in names)
        if found := list(dropwhile(is_home, (name for name in shown if name))):
            return found[:MOST]
    return []


def is_home(name: str) -> bool:
    """Tell whether a crumb names the first page of every site."""
    return name.casefold() in HOME


def above(names: list[str], *titles: str) -> list[str]:
    """Return the crumbs without the page's own, which is called as one of its titles."""
    own = {part.casefold() for title in titles for part in (title, SITE.split(title)[0])}
    return names[:-1] if names and names[-1].casefold() in own else names


def stated(tree: LexborHTMLParser) -> Iterator[list[str]]:
    """Yield the names of each BreadcrumbList in JSON-LD (https://schema.org/BreadcrumbList)."""
    for node in tree.css(DATA):
        text = node.text()
        if "BreadcrumbList" not in text or len(text) > DATA_LENGTH:
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for each in lists(data):
            yield names_of(each.get("itemListElement"))


def lists(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the breadcrumb lists of a script, which may lie in lists, graphs and pages."""
    waiting = [data]
    for each in waiting:  # which grow meanwhile
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            if "BreadcrumbList" in str(each.get("@type")):
                yield each
            waiting += [each.get("@graph"), each.get("breadcrumb")]


def names_of(items: Any) -> list[str]:
    """Return the names of list items, in the order of their positions where all have one."""
    found = [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    places = [str(each.get("position")) for each in found]
    if all(place.isascii() and place.isdigit() and len(place) < LONGEST for place in places):
        found.sort(key=lambda each: int(each["position"]))
    return [as_text(each.get("name")) or name_of(each.get("item")) for each in found]


def name_of(item: Any) -> str:
    """Return the name of the page that a list item leads to."""
    return as_text(item.get("name")) if isinstance(item, dict) else ""


def marked_up(tree: LexborHTMLParser) -> Iterator[list[str]]:
    """Yield the names of each BreadcrumbList in microdata."""
    for node in tree.css(MICRODATA):
        yield [
            as_text(name.attributes.get("content")) or name.text(separator=" ")
            for name in node.css("[itemprop~=name]")
        ]


def seen(tree: LexborHTMLParser) -> Iterator[list[str]]:
    """Yield the names in each trail of links: its items, or its links where it is no list."""
    for node in tree.css(VISIBLE):
        for each in node.css(LEFT_OUT):
            each.decompose()
        items = texts(node, "li")
        yield items if any(items) else texts(node, "a")


def texts(node: LexborNode, selector: str) -> list[str]:
    """Return the texts of the elements within."""
    return [each.text(separator=" ") for each in node.css(selector)]
