"""Passages: what an answer may rely on, and the list under it that says where it is written."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.attributes import MarkedSource, Passage, Source, SourceReference
from agents.documentation.citations.statements import without_markers
from agents.words import EVERY_FUNCTION_WORD, LOCALES, Phrase, content_words, stem, terms, words
from knowledge.embedding import encode
from knowledge.errors import EmbeddingUnavailable
from knowledge.search.typos import is_in_use, slips_of

# So much of a question's meaning goes with a word that carries it, as 1 - cosine by
# all-MiniLM-L6-v2: "Canada" 0.21, "refund" 0.24, "students" 0.26, and "check" 0.12, "whether" 0.11,
# "complies" 0.02, "explain" 0.01.
CARRIES = 0.13
# So few letters carry nothing, unless they are a name.
SHORT = 2
BEGINNING = re.compile(r"(?:^|[.!?:\n])\W*$")
WITHOUT_APOSTROPHES = frozenset(word.replace("'", "") for word in EVERY_FUNCTION_WORD)
MARKUP = " \t#*_:>-\uff1a"
MARKS = ("#", "**", "__")
MOST_OF_HEADING = 3  # words
ENTRY = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,3}[.)]|\[C\d+\])")


def heading(passage: Passage | SourceReference) -> str:
    """Title and section of a passage on one line."""
    return " > ".join(part for part in (passage.title, passage.section) if part)


def referenced(marker: str, passage: Passage) -> SourceReference:
    """Return a passage as what a marker of an answer stands for."""
    shared = passage.model_dump(exclude={"language", "cosine", "score"})
    return SourceReference(marker=marker, score=unit(passage.cosine), **shared)


def unit(cosine: float | None) -> float | None:
    """Return a cosine within 0 and 1; it may be a little more, and below 0 says as little as 0."""
    return None if cosine is None else min(1.0, max(0.0, cosine))


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
    """The words that carry what the question is about and that no passage mentions, as written."""
    missing = [word for word in absent(question, passages) if not is_slip(word, question)]
    return subjects(question, missing)


def absent(question: str, passages: Iterable[Passage | SourceReference]) -> list[str]:
    """The words of the question that no passage has, function words apart, as written."""
    mentioned_terms = {term for p in passages for term in terms(f"{p.title} {p.section} {p.text}")}
    return [
        word for word in dict.fromkeys(content_words(question)) if stem(word) not in mentioned_terms
    ]


def subjects(question: str, candidates: Sequence[str]) -> list[str]:
    """Those of a question's words without which it would ask for something else.

    Names, numbers and codes do. Of other words the embedding model says how much of the meaning
    goes when the word is left out; without a model all of them count.
    """
    named = {word for word in candidates if is_name(word, question)}
    rest = [word for word in candidates if word not in named]
    others = [re.sub(_standing_alone(word), " ", question) for word in rest]
    if not rest:
        return list(candidates)
    try:
        asked, *without = encode([question, *others])
    except EmbeddingUnavailable:
        return list(candidates)
    for word, vector in zip(rest, without, strict=True):
        if 1 - vector @ asked >= CARRIES:
            named.add(word)
    return [word for word in candidates if word in named]


def is_name(word: str, question: str) -> bool:
    """Whether a word has a digit, or a capital where no sentence begins."""
    places = re.finditer(_standing_alone(word), question)
    return any(letter.isdigit() for letter in word) or any(
        match[0][0].isupper() and not BEGINNING.search(question[: match.start()])
        for match in places
    )


def is_slip(word: str, question: str) -> bool:
    """Whether a word is a misspelt function word: "dont", "im", "hwo"."""
    if is_name(word, question):
        return False
    return (
        len(word) <= SHORT
        or word.replace("'", "") in WITHOUT_APOSTROPHES
        or not (
            is_in_use(f"english {stem(word)}")
            or is_in_use(f"english {word}")
            or EVERY_FUNCTION_WORD.isdisjoint(slips_of(word))
        )
    )


def _standing_alone(word: str) -> str:
    # Chinese writes no spaces: there a word stands anywhere.
    return rf"(?i)(?<!\w){re.escape(word)}(?!\w)" if word.isascii() else rf"(?i){re.escape(word)}"


def searched_for(stats: Mapping[str, Any], language: str) -> str:
    """Say which words were searched for instead of typed ones; empty where none were."""
    words = list(dict.fromkeys((stats.get("corrected") or {}).values()))
    return Phrase.CORRECTED.in_language(language, words=", ".join(words)) if words else ""


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


def without_written_list(answer: str, references: Sequence[SourceReference]) -> str:
    """Return an answer without the list of sources its writer put at its end, however it is headed.

    Each entry names one of the references by its title or its source, and says nothing beside but
    what stands in these and in its section, numbers and markers.
    """
    lines = without_own_list(answer).splitlines()
    place = len(lines)
    while place and (not lines[place - 1].strip() or _names_one(lines[place - 1], references)):
        place -= 1
    head, colon, entry = (lines[place - 1] if place else "").replace("\uff1a", ":").partition(":")
    is_heading = len(words(head)) <= MOST_OF_HEADING and (colon or head.startswith(MARKS))
    is_list = _names_one(entry, references) if entry.strip(MARKUP) else place < len(lines)
    kept = lines[: place - 1] if place > 1 and is_heading and is_list else lines
    return "\n".join(kept).rstrip()


def _names_one(line: str, references: Sequence[SourceReference]) -> bool:
    """Whether a line names one of the references, and says no word that is not of its names."""
    said = words(without_markers(line))
    told = f" {' '.join(said)} "
    return any(
        any(name and f" {' '.join(words(name))} " in told for name in (each.title, each.source))
        and {word for word in said if not word.isdigit()}
        <= {*words(heading(each)), *words(each.source)}
        for each in references
    )


def list_headings() -> frozenset[str]:
    """What the line above a list of sources says, in lower case and without markup."""
    return frozenset(bare_line(Phrase.SOURCES.in_language(language)) for language in LOCALES)


def bare_line(line: str) -> str:
    """A line in lower case without the markup of a heading."""
    return line.strip(MARKUP).casefold()
