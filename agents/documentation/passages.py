"""Passages: what an answer may rely on, and the list under it that says where it is written."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from agents.attributes import MarkedSource, Passage, Source, SourceReference
from agents.words import LOCALES, Phrase, content_words, stem, terms

# How else models head the list of sources, in lower case.
OTHER_HEADINGS = (
    "source",
    "references",
    "reference",
    "citations",
    "quelle",
    "quellenangaben",
    "referencias",
    "r\u00e9f\u00e9rences",
    "\u0438\u0441\u0442\u043e\u0447\u043d\u0438\u043a",
    "\u0441\u0441\u044b\u043b\u043a\u0438",
    "\u53c2\u8003\u8d44\u6599",
)
MARKUP = " \t#*_:>-\uff1a"
ENTRY = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,3}[.)]|\[C\d+\])")


def heading(passage: Passage | SourceReference) -> str:
    """Title and section of a passage on one line."""
    return " > ".join(part for part in (passage.title, passage.section) if part)


def with_heading(reference: SourceReference) -> str:
    """The text of a passage below its heading, which a statement may take for granted."""
    return f"# {heading(reference)}\n\n{reference.text}"


def as_context(passages: Iterable[Passage]) -> str:
    """The passages as one text, each under its heading."""
    return "\n\n".join(f"# {heading(passage)}\n{passage.text}" for passage in passages)


def fitting(passages: Iterable[Passage], limit: int) -> list[Passage]:
    """The best passages whose texts and headings together stay within `limit` characters.

    The first is cut when it alone is too long, so that something is always left.
    """
    chosen: list[Passage] = []
    left = limit
    for passage in passages:
        length = len(passage.text) + len(heading(passage))
        if length <= left:
            chosen.append(passage)
            left -= length
        elif not chosen:
            chosen.append(passage.model_copy(update={"text": passage.text[:limit]}))
            break
    return chosen


def unmentioned(question: str, passages: Iterable[Passage | SourceReference]) -> list[str]:
    """The words of the question that no passage mentions, as the user wrote them."""
    mentioned_terms = {term for p in passages for term in terms(f"{p.title} {p.section} {p.text}")}
    return [
        word for word in dict.fromkeys(content_words(question)) if stem(word) not in mentioned_terms
    ]


def with_sources(text: str, cited: Iterable[MarkedSource], language: str) -> dict[str, Any]:
    """Return the answer with the list of its sources below it, and the sources, as writes."""
    sources = cited_sources(cited)
    return {
        "response": f"{text}\n\n{source_list(sources, language)}",
        "sources_used": sources,
    }


def cited_sources(references: Iterable[MarkedSource]) -> list[Source]:
    """The cited passages, each document's section once."""
    sources: dict[tuple[str, str], Source] = {}
    for reference in references:
        source = Source(**reference.model_dump(include=set(Source.model_fields)))
        sources.setdefault((reference.document_id, reference.section), source)
    return list(sources.values())


def source_list(sources: Sequence[Source], language: str) -> str:
    """The list under an answer: title — section — file or URL (version).

    The version is the document's own, where it names one, as readers know it.
    """
    lines = []
    for source in sources:
        entry = " — ".join(part for part in (source.title, source.section, source.source) if part)
        version = Phrase.VERSION.in_language(language, number=source.edition or source.version)
        lines.append(f"- {entry} ({version})")
    return "\n".join([Phrase.SOURCES.in_language(language), *lines])


def without_own_list(answer: str) -> str:
    """Return an answer without the list of sources its writer put at its end."""
    lines = answer.rstrip().splitlines()
    headings = list_headings()
    for place in range(len(lines) - 1, -1, -1):
        heading = lines[place].replace("\uff1a", ":").partition(":")[0]
        below = [line for line in lines[place + 1 :] if line.strip()]
        if bare_line(heading) in headings:
            if all(ENTRY.match(line) or line.startswith((" ", "\t")) for line in below):
                return "\n".join(lines[:place]).rstrip()
            return answer.rstrip()
    return answer.rstrip()


def list_headings() -> frozenset[str]:
    """What the line above a list of sources says, in lower case and without markup."""
    phrases = (Phrase.SOURCES.in_language(language) for language in LOCALES)
    return frozenset(map(bare_line, (*phrases, *OTHER_HEADINGS)))


def bare_line(line: str) -> str:
    """A line in lower case without the markup of a heading."""
    return line.strip(MARKUP).casefold()
