"""Context: the passages an answer may rely on, cut to what may be read at once."""

from collections.abc import Iterable

from agents.attributes import Passage, SourceReference
from agents.terms import content_words, stem, terms


def heading(passage: Passage | SourceReference) -> str:
    """Title and section of a passage on one line."""
    return " > ".join(part for part in (passage.title, passage.section) if part)


def said_by(reference: SourceReference) -> str:
    """What a passage says below its heading, which a statement may take for granted."""
    return f"# {heading(reference)}\n\n{reference.text}"


def unmentioned(question: str, passages: Iterable[Passage | SourceReference]) -> list[str]:
    """The words of the question that no passage mentions, as the user wrote them."""
    mentioned = {term for p in passages for term in terms(f"{p.title} {p.section} {p.text}")}
    return [word for word in dict.fromkeys(content_words(question)) if stem(word) not in mentioned]


def fitting(passages: Iterable[Passage], limit: int) -> list[Passage]:
    """The best passages whose texts and headings together stay within `limit` characters.

    The first is cut when it alone is too long, so that something is always left.
    """
    kept: list[Passage] = []
    left = limit
    for passage in passages:
        length = len(passage.text) + len(heading(passage))
        if length <= left:
            kept.append(passage)
            left -= length
        elif not kept:
            kept.append(passage.model_copy(update={"text": passage.text[:limit]}))
            break
    return kept


def as_context(passages: Iterable[Passage]) -> str:
    """The passages as one text, each under its heading."""
    return "\n\n".join(f"# {heading(passage)}\n{passage.text}" for passage in passages)
