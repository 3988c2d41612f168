"""Rendering: an answer as safe HTML, its markers linked to the citations below it."""

import re
from collections.abc import Iterable, Iterator

from django.utils.safestring import SafeString, mark_safe
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from knowledge.rendering import cleaner, parser

MARKER = re.compile(r"\[(C\d{1,3})\]")
INNER_LINK = re.compile(r"#C\d{1,3}\Z")


def _link_markers(state: StateCore) -> None:
    """Make links of the markers in running text; those in code stay as they are."""
    for token in state.tokens:
        if token.children:
            token.children = [
                part
                for child in token.children
                for part in (
                    _split(child, state.env["markers"]) if child.type == "text" else (child,)
                )
            ]


def _split(text: Token, known: frozenset[str]) -> Iterator[Token]:
    end = 0
    for found in MARKER.finditer(text.content):
        if found[1] not in known:
            continue
        yield Token("text", "", 0, content=text.content[end : found.start()])
        yield Token("link_open", "a", 1, attrs={"href": f"#{found[1]}"})
        yield Token("text", "", 0, content=found[0])
        yield Token("link_close", "a", -1)
        end = found.end()
    yield Token("text", "", 0, content=text.content[end:])


# Without reference definitions: "[C1]: https://…" in a quoted document must not capture a marker.
_PARSER = parser().disable("reference")
_PARSER.core.ruler.push("markers", _link_markers)
_CLEANER = cleaner(lambda address: address if INNER_LINK.match(address) else None)


def answer(text: str, markers: Iterable[str] = ()) -> SafeString:
    """Return the Markdown of an answer as safe HTML, each `[C1]` of `markers` a link to `#C1`."""
    rendered = _PARSER.render(text, {"markers": frozenset(markers)})
    return mark_safe(_CLEANER.clean(rendered))  # noqa: S308 cleaned just now


def quote(text: str) -> SafeString:
    """Return one quoted sentence as safe HTML without paragraphs."""
    rendered = _PARSER.renderInline(text, {"markers": frozenset()})
    return mark_safe(_CLEANER.clean(rendered))  # noqa: S308 cleaned just now
