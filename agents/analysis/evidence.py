"""Evidence: the passages that tools gave, by ids that do not depend on who found them, or when.

A specialist names a passage by its id, and the answer by a marker. What no tool gave has neither.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.analysis.shapes import Evidence
from agents.attributes import SourceReference
from agents.documentation import passages
from agents.models import ToolRun
from agents.tools.tool import ToolOutcome, as_json, excerpt
from knowledge.search import Passage

# Under which a tool gives its passages; whatever else it says names them by their ids.
PASSAGES = "passages"
ID = re.compile(r"\bp[0-9a-f]{8}\b")
# A line of a passage that looks like the beginning of the next one.
OTHERS_ID = re.compile(r"^([ \t]*)\[(?=p[0-9a-f]{8}\])", re.MULTILINE)
IN_BRACKETS = re.compile(r"\[\s*(p[0-9a-f]{8}(?:\s*[,;]\s*p[0-9a-f]{8})*)\s*\]")


def evidence_id(chunk_id: int, version: int) -> str:
    """Return the id of a passage: of its chunk and of the version of its document alone."""
    return "p" + hashlib.sha256(f"{chunk_id}:{version}".encode()).hexdigest()[:8]


def of_passage(passage: Passage) -> Evidence:
    """Return what a search found as evidence."""
    return Evidence(
        id=evidence_id(passage.chunk_id, passage.version),
        document_id=passage.document_id,
        chunk_id=passage.chunk_id,
        version=passage.version,
        edition=passage.edition,
        title=passage.title,
        section=passage.section,
        crumbs=passage.crumbs,
        source=passage.source,
        language=passage.language,
        text=passage.text,
        score=passages.unit(passage.cosine),
    )


def of_runs(runs: Iterable[ToolRun]) -> dict[str, Evidence]:
    """Return the passages that the calls of tools gave, by their ids, in the order of these."""
    found: dict[str, Evidence] = {}
    for run in runs:
        if run.outcome == ToolOutcome.OK and isinstance(run.result, dict):
            given = map(Evidence.model_validate, run.result.get(PASSAGES, ()))
            found = merged(found, {each.id: each for each in given})
    return found


def merged(one: Mapping[str, Evidence], other: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """Return both; of a passage that is in both, with the higher score, so the order is all one."""
    both = {**one}
    for name, each in other.items():
        before = both.setdefault(name, each)
        if _score(each) > _score(before):
            both[name] = each
    return both


def _score(evidence: Evidence) -> float:
    return -1.0 if evidence.score is None else evidence.score


def as_told(result: Mapping[str, Any]) -> str:
    """Return what a model is told of passages: each under its id, a long one by its two ends.

    What else a tool says comes first, as JSON, and is shortened like any other result.
    """
    more = {name: value for name, value in result.items() if name != PASSAGES}
    given = map(Evidence.model_validate, result.get(PASSAGES, ()))
    return "\n\n".join([*([as_json(more)] if more else []), *map(_told, given)])


def _told(evidence: Evidence) -> str:
    place = " > ".join(part for part in (evidence.title, evidence.section) if part)
    text = OTHERS_ID.sub(r"\1\\[", excerpt(evidence.text))
    return f"[{evidence.id}] {place} (document {evidence.document_id})\n{text}"


@dataclass(frozen=True)
class Named:
    """The passages that a model named: those that a tool gave, and what it made up."""

    known: list[str]
    invented: list[str]


def named(ids: Iterable[str], given: Collection[str]) -> Named:
    """Return which of the ids a tool gave, each once and in order."""
    distinct = list(dict.fromkeys(each.strip().strip("[]") for each in ids))
    return Named(
        [each for each in distinct if each in given],
        [each for each in distinct if each not in given],
    )


def named_in(text: str, given: Collection[str]) -> Named:
    """Return the passages that a text names by their ids."""
    return named(ID.findall(text), given)


def references(evidence: Iterable[Evidence]) -> list[SourceReference]:
    """Return the passages as the check of an answer takes them, marked from C1 in their order."""
    return [_reference(f"C{number}", each) for number, each in enumerate(evidence, start=1)]


def _reference(marker: str, evidence: Evidence) -> SourceReference:
    shared: dict[str, Any] = evidence.model_dump(exclude={"id", "language"})
    return SourceReference(marker=marker, **shared)


def with_markers(text: str, given: Iterable[Evidence]) -> str:
    """Return a text that names passages by id in brackets with the markers of `references`.

    An id that is none of these goes with its brackets.
    """
    markers = {each.id: f"[C{number}]" for number, each in enumerate(given, start=1)}

    def marked(match: re.Match[str]) -> str:
        return "".join(markers.get(each, "") for each in ID.findall(match[1]))

    return IN_BRACKETS.sub(marked, text)
