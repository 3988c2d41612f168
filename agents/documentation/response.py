"""Response: answers with the sentences of the passages that say it, each cited."""

import re
from collections.abc import Sequence

from agents.attributes import Citation, Reason, Source, SourceReference
from agents.contract import View, Writes, agent
from agents.documentation.choosing import choose
from agents.documentation.citing import support
from agents.documentation.excerpts import Excerpt, scored
from agents.languages import ENGLISH, base
from agents.names import Role
from agents.phrases import Phrase
from agents.terms import content_words, stem, terms

RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:)[^)]*\)")


def _as_said(excerpt: Excerpt, number: int) -> str:
    """The excerpt as it stands in the answer, its marker behind it."""
    # A link into the documents' own pages leads nowhere from an answer.
    text = RELATIVE_LINK.sub(r"\1", excerpt.text)
    gap = "\n" if excerpt.kind == "code" else " "
    marked = f"{text}{gap}[{excerpt.reference.marker}]"
    if excerpt.kind == "item":
        return f"{number}. {marked}" if excerpt.numbered else f"- {marked}"
    return marked


def _composed(excerpts: Sequence[Excerpt], as_list: bool) -> str:
    """The answer's body: sentences run on, lists, rows and code stand on lines of their own."""
    body = ""
    number = 0
    before: Excerpt | None = None
    for excerpt in excerpts:
        number = number + 1 if excerpt.numbered else 0
        piece = _as_said(excerpt, number)
        if as_list and excerpt.kind == "prose":
            piece = f"- {piece}"
        body += (_gap(before, excerpt, as_list) if before else "") + piece
        before = excerpt
    return body


def _gap(before: Excerpt, now: Excerpt, as_list: bool) -> str:
    prose = before.kind == now.kind == "prose"
    if prose and not as_list:
        # What leads to a list begins a paragraph.
        return " " if before.rank == now.rank and now.series < 0 else "\n\n"
    together = before.kind == now.kind or (before.series == now.series >= 0)
    return "\n" if as_list or (together and before.rank == now.rank) else "\n\n"


def _citations(excerpts: Sequence[Excerpt]) -> list[Citation]:
    return [
        Citation(
            quote=excerpt.text,
            citation_status=support(excerpt.text, excerpt.reference.text),
            **excerpt.reference.model_dump(exclude={"text"}),
        )
        for excerpt in excerpts
    ]


def _sources(excerpts: Sequence[Excerpt]) -> list[Source]:
    """The cited passages, each document's section once."""
    fields = ("title", "section", "source", "version", "score")
    found: dict[tuple[str, str], Source] = {}
    for excerpt in excerpts:
        r = excerpt.reference
        found.setdefault((r.document_id, r.section), Source(**{f: getattr(r, f) for f in fields}))
    return list(found.values())


def source_list(sources: Sequence[Source], language: str) -> str:
    """The list under an answer: title — section — file or URL (version)."""
    lines = []
    for source in sources:
        named = " — ".join(part for part in (source.title, source.section, source.source) if part)
        version = Phrase.VERSION.said_in(language, number=source.version)
        lines.append(f"- {named} ({version})")
    return "\n".join([Phrase.SOURCES.said_in(language), *lines])


def _missing(question: str, references: Sequence[SourceReference]) -> list[str]:
    said = {term for r in references for term in terms(f"{r.title} {r.section} {r.text}")}
    return [word for word in dict.fromkeys(content_words(question)) if stem(word) not in said]


def _asks(question: str, references: Sequence[SourceReference], language: str) -> Writes:
    """Nothing to quote: say what the passages do not mention."""
    missing = _missing(question, references)
    message = Phrase.NOT_COVERED.said_in(language, missing=", ".join(missing)) if missing else ""
    partly = missing and len(missing) < len(set(content_words(question)))
    return {
        "needs_clarification": True,
        "clarification_reason": Reason.MISSING_DETAILS if partly else Reason.INSUFFICIENT_CONTEXT,
        "clarification_message": message,
        "generation_confidence": 0.0,
    }


@agent(
    Role.RESPONSE,
    reads=(
        "augmented_prompt",
        "source_references",
        "language",
        "canonical_question",
        "quality_analysis",
        "history",
        "response_notes",
    ),
    writes=(
        "response",
        "sources_used",
        "citations_used",
        "generation_confidence",
        "generation_error",
    ),
)
def answer(view: View) -> Writes:
    """Quote what answers the question; ask when nothing does.

    What quality found unsupported in an answer before is not said again.
    """
    language = view.language or ENGLISH
    question = view.canonical_question or ""
    references = view.source_references or []
    notes = view.response_notes or []
    excerpts, scores, vectors = scored(question, references)
    chosen = [
        excerpt
        for excerpt in choose(excerpts, scores, vectors, notes)
        if excerpt.text not in (view.quality_analysis or "")
    ]
    if not chosen:
        return _asks(question, references, language)
    sources = _sources(chosen)
    parts = [_composed(chosen, "list" in notes), source_list(sources, language)]
    # Titles and quotes stay as they are; that they do is said once.
    if base(language) != ENGLISH:
        parts.insert(0, Phrase.QUOTED.said_in(language))
    return {
        "response": "\n\n".join(parts),
        "citations_used": _citations(chosen),
        "sources_used": sources,
        "generation_confidence": min(1.0, max(0.0, float(scores.max()))),
    }
