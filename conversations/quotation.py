"""Quotation: the place in a document that an answer cites, at its version, its sentence marked."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from agents.models import Envelope
from agents.words import terms
from knowledge.models import Document, Version
from knowledge.safe_html import BLOCKS, HEADINGS, REL, SCHEMES, TABLES, TEXT, parser
from knowledge.sentences import split_passage, split_sentences
from knowledge.versions import version

# Around what is marked, in the Markdown on its way to HTML: no text has these, see `_plain`.
BEGIN, END = "\ue000", "\ue001"
# So many words of a sentence say where it stands; a quote can be a whole section.
LONGEST_PLACE = 60
# A sentence that shares less with what is said is not what it rests on.
LEAST_SHARED = 0.34
WORD = re.compile(r"\w+")
NOTHING = SafeString()


@dataclass(frozen=True)
class Quotation:
    """A cited passage, and what of its document stands around it where that version is kept."""

    citation: dict[str, Any]  # with `quotes`, as `answers.by_marker` has it
    passage: SafeString
    before: SafeString = NOTHING
    after: SafeString = NOTHING
    document: Document | None = None  # None: deleted since

    @property
    def is_outdated(self) -> bool:
        """Whether the document says something else by now."""
        return bool(self.document and self.document.version != self.citation["version"])


def quotation(turn: Envelope, citation: dict[str, Any]) -> Quotation:
    """Return what a marker of a turn's answer stands for."""
    document = Document.objects.filter(pk=citation["document_id"]).first()
    content = _content(document, citation["version"]) if document else ""
    passage = _passage(turn, citation)
    begin, end = _place(content, passage)
    text = _plain(content[begin:end] if end else passage)
    return Quotation(
        citation,
        _html(_marked(text, [quote["text"] for quote in citation["quotes"]])),
        _html(_untitled(_plain(content[:begin]), citation["title"])) if end else NOTHING,
        _html(_plain(content[end:])) if end else NOTHING,
        document,
    )


def _content(document: Document, number: int) -> str:
    try:
        return version(document, number).content
    except Version.DoesNotExist:
        return ""


def marked_passage(turn: Envelope, citation: dict[str, Any]) -> str:
    """Return the passage behind a citation, its sentences between BEGIN and END."""
    return _marked(_plain(_passage(turn, citation)), [each["text"] for each in citation["quotes"]])


def _passage(turn: Envelope, citation: dict[str, Any]) -> str:
    """Return the passage as the answer was written from it."""
    marker = citation["marker"]
    for reference in turn.payload.get("source_references") or ():
        if reference["marker"] == marker:
            return str(reference["text"])
    for passage in turn.payload.get("search_results") or ():
        if passage["chunk_id"] == citation["chunk_id"]:
            return str(passage["text"])
    return "\n\n".join(quote["text"] for quote in citation["quotes"])


def _place(content: str, passage: str) -> tuple[int, int]:
    """Return where a passage begins and ends in the text of its document; (0, 0): nowhere."""
    begin = content.find(passage.strip())
    if passage.strip() and begin >= 0:
        return begin, begin + len(passage.strip())
    # A long one was put together anew: its beginning and its end still stand there.
    words = WORD.findall(passage)
    first = _find(content, words[:8])
    last = _find(content, words[-8:], after=first[0]) if first else None
    if first and last and last[1] - first[0] < 2 * len(passage) + 200:
        return content.rfind("\n", 0, first[0]) + 1, last[1]
    return 0, 0


def _find(text: str, words: Sequence[str], after: int = 0) -> tuple[int, int] | None:
    """Return where these words follow each other, whatever signs are between them."""
    if not words:
        return None
    found = re.compile(r"\W+".join(map(re.escape, words)), re.IGNORECASE).search(text, after)
    return found.span() if found else None


def _marked(passage: str, quotes: Iterable[str]) -> str:
    """Return the passage with signs around the sentences that quotes are, or rest on."""
    spans = sorted(filter(None, (_span(passage, quote) for quote in quotes)))
    apart: list[tuple[int, int]] = []
    for begin, end in spans:
        if apart and begin <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((begin, end))
    for begin, end in reversed(apart):
        passage = f"{passage[:begin]}{BEGIN}{passage[begin:end]}{END}{passage[end:]}"
    return passage


def _span(passage: str, quote: str) -> tuple[int, int] | None:
    """Return where a quote stands, or the sentence that shares most of its terms with it."""
    for candidate in _candidates(passage, quote):
        words = WORD.findall(candidate)
        first = _find(passage, words[:LONGEST_PLACE])
        if first is None:
            continue
        last = _find(passage, words[-LONGEST_PLACE:], after=first[0])
        return first[0], max(first[1], last[1] if last else 0)
    return None


def _candidates(passage: str, quote: str) -> Iterator[str]:
    """Yield what to look for, the nearest first."""
    yield quote
    wanted = set(terms(quote))
    statements = [part for each in split_passage(passage) for part in split_sentences(each)]
    if not wanted or not statements:
        return
    shared = [len(wanted & set(terms(statement))) / len(wanted) for statement in statements]
    best = max(shared)
    if best >= LEAST_SHARED:
        yield statements[shared.index(best)]


def _untitled(content: str, title: str) -> str:
    """Return the text of a document without its title, which stands above it already."""
    first, _, rest = content.lstrip().partition("\n")
    return rest if first.strip("# ").casefold() == title.casefold() else content


def _plain(text: str) -> str:
    return text.replace(BEGIN, "").replace(END, "")


def _html(markdown: str) -> SafeString:
    """Return Markdown as safe HTML, what stands between the signs in `mark`."""
    rendered = _PARSER.render(markdown)
    return mark_safe(_CLEANER.clean(_plain(rendered)))  # noqa: S308 cleaned just now


def _mark(state: StateCore) -> None:
    """Wrap each piece of text between the signs; they may stand in different paragraphs."""
    is_on = False
    for token in state.tokens:
        if token.type in {"fence", "code_block"}:
            is_on = _pieces(token.content, is_on=is_on)[-1][1]
        children: list[Token] = []
        for child in token.children or ():
            if child.type in {"text", "code_inline"}:
                pieces = _pieces(child.content, is_on=is_on)
                is_on = pieces[-1][1]
                children += (part for piece in pieces for part in _wrapped(child, *piece))
            else:
                children.append(child)
        if token.children:
            token.children = children


def _pieces(text: str, *, is_on: bool) -> list[tuple[str, bool]]:
    """Return the pieces of a text, and of each whether it is marked; the last says what comes."""
    pieces = []
    for piece in re.split(f"([{BEGIN}{END}])", text):
        if piece in {BEGIN, END}:
            is_on = piece == BEGIN
        else:
            pieces.append((piece, is_on))
    return pieces


def _wrapped(token: Token, content: str, is_marked: bool) -> list[Token]:
    if not content:
        return []
    piece = token.copy(content=content)
    if not is_marked:
        return [piece]
    return [Token("mark_open", "mark", 1), piece, Token("mark_close", "mark", -1)]


_PARSER = parser()
_PARSER.core.ruler.push("marks", _mark)
_CLEANER = nh3.Cleaner(
    tags=TEXT | BLOCKS | HEADINGS | TABLES | {"mark"},
    attributes={"a": {"href"}, "ol": {"start"}},
    url_schemes=SCHEMES,
    url_relative="deny",
    link_rel=REL,
)
