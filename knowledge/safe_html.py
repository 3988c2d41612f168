"""Safe HTML: turns Markdown that strangers wrote into HTML a browser may show."""

from collections.abc import Callable, Sequence
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

TEXT = frozenset({"a", "br", "code", "del", "em", "s", "strong"})
BLOCKS = frozenset({"blockquote", "hr", "li", "ol", "p", "pre", "ul"})
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
TABLES = frozenset({"table", "tbody", "td", "th", "thead", "tr"})
SCHEMES = frozenset({"http", "https", "mailto"})
REL = "noopener noreferrer nofollow ugc"


def parser() -> MarkdownIt:
    """Return a parser for CommonMark with tables. Raw HTML comes out as text, images as words."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.add_render_rule("image", image_text)
    return markdown


def image_text(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    return escape(self.renderInlineAsText(tokens[index].children or [], options, env))


def cleaner(inner_link: Callable[[str], str | None] | None = None) -> nh3.Cleaner:
    """Return what removes everything but harmless tags, and links other than https, http, mailto.

    A relative address would lead into Docent itself, so it loses its link; `inner_link` may
    return those that shall stay.
    """
    return nh3.Cleaner(
        tags=TEXT | BLOCKS | HEADINGS | TABLES,
        attributes={"a": {"href"}, "ol": {"start"}},
        url_schemes=SCHEMES,
        url_relative=inner_link or "deny",
        link_rel=REL,
    )


_PARSER = parser()
_CLEANER = cleaner()


def html(markdown: str) -> SafeString:
    """Return the text of a document as safe HTML."""
    return mark_safe(_CLEANER.clean(_PARSER.render(markdown)))  # noqa: S308 cleaned just now
