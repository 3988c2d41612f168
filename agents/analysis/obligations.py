"""Obligations: what documents prescribe, found by its wording, and what is near to it elsewhere.

This takes no model, and so says nothing of whether a duty is met: it is a list of what to look at,
with the passages that are nearest to each, and how sure search is of these.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agents.analysis.document_tools import documents_of
from agents.analysis.evidence import of_passage
from agents.analysis.shapes import Evidence
from agents.attributes import Unit, Value
from agents.tools.tool import Caller
from knowledge.language import surely
from knowledge.models import Chunk
from knowledge.norms import Kind, languages, norms
from knowledge.search import Passage, passages_of, search

# Passages of a question that are read for obligations, and those that are given for each of these.
READ, MATCHED = 10, 3
# Documents among which others than the obligations' own can be named one by one.
MOST_DOCUMENTS = 2000
Certainty = Literal["high", "medium", "low", "none"]
# How likely the first passage answers, by `knowledge.search.confidence.certainty`.
SURE, LIKELY = 0.8, 0.5


class Match(Value):
    """A passage that may bear on an obligation."""

    evidence: str  # id of the passage
    similarity: Unit | None  # None where only words were compared


class Obligation(Value):
    """A sentence that prescribes, forbids or allows something."""

    id: str  # "REQ-001"
    requirement: str  # the sentence as it is written
    kind: Kind
    wording: str  # what in it tells so: "shall not"
    document: str  # its title
    section: str
    evidence: str  # id of the passage it stands in
    matches: list[Match] = []  # the nearest first; none where nothing near was found
    # How likely the first match is about it, 0 to 1; None where only words were compared.
    confidence: Unit | None = None

    @property
    def certainty(self) -> Certainty:
        """The confidence in a word; "none" where nothing near was found."""
        if not self.matches:
            return "none"
        sure = self.confidence or 0.0
        return "high" if sure >= SURE else "medium" if sure >= LIKELY else "low"


class Obligations(Value):
    """A checklist, and the passages it names."""

    obligations: list[Obligation]
    evidence: dict[str, Evidence]
    passages: int  # that were read for it
    left_out: int = 0  # obligations beyond the most that were asked for
    # Languages of documents whose wordings are not known, so that nothing was found in them.
    unread_languages: list[str] = []


@dataclass
class _Found:
    """The obligations of some passages."""

    items: list[tuple[Passage, Kind, str, str]] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    passages: int = 0


def checklist(
    reader: Caller,
    *,
    question: str = "",
    against: Caller | None = None,
    kinds: Sequence[Kind] = ("duty", "prohibition"),
    limit: int = 30,
    matched: int = MATCHED,
) -> Obligations:
    """Return the first `limit` obligations that `reader` may see, and what is near to each.

    With a question, those in the passages that answer it; without, those of all documents, in
    order. They are matched with the passages of `against`, which without one are those of the other
    documents in reach. Raises UnknownCollection. No transaction may be open.
    """
    found = _obligations(_passages(reader, question), kinds)
    own = {passage.document_id for passage, *_ in found.items}
    near = _matcher(against or reader, own if against is None else set(), matched)
    evidence: dict[str, Evidence] = {}
    listed = []
    for number, (passage, kind, text, wording) in enumerate(found.items[:limit], start=1):
        source = of_passage(passage)
        matches, confidence = near(text)
        evidence |= {each.id: each for each in (*matches, source)}
        listed.append(
            Obligation(
                id=f"REQ-{number:03}",
                requirement=text,
                kind=kind,
                wording=wording,
                document=passage.title,
                section=passage.section,
                evidence=source.id,
                matches=[Match(evidence=each.id, similarity=each.score) for each in matches],
                confidence=confidence,
            )
        )
    return Obligations(
        obligations=listed,
        evidence=evidence,
        passages=found.passages,
        left_out=max(0, len(found.items) - limit),
        unread_languages=sorted(found.unread),
    )


def _passages(reader: Caller, question: str) -> Iterator[Passage]:
    """Yield the passages that answer a question, or without one all of them, in order."""
    if question:
        yield from search(
            question,
            collections=reader.collections,
            languages=reader.languages,
            audience=reader.audience,
            documents=reader.documents,
            spoken=surely(question),
            limit=READ,
        ).passages
        return
    for document in documents_of(reader).order_by("source").values_list("pk", flat=True):
        chunks = Chunk.objects.filter(document=document).order_by("number")
        yield from passages_of(list(chunks.values_list("pk", flat=True)))


def _obligations(passages: Iterable[Passage], kinds: Sequence[Kind]) -> _Found:
    """Return what passages prescribe; what two of them overlap in counts once."""
    found = _Found()
    known = languages()
    seen: set[tuple[str, str]] = set()
    for passage in passages:
        found.passages += 1
        if passage.language.partition("-")[0] not in known:
            found.unread.add(passage.language)
        for norm in norms(passage.text, passage.language):
            once = (passage.document_id, " ".join(norm.text.split()))
            if norm.kind in kinds and once not in seen:
                seen.add(once)
                found.items.append((passage, norm.kind, norm.text, norm.wording))
    return found


def _matcher(
    reader: Caller, own: set[str], matched: int
) -> Callable[[str], tuple[list[Evidence], float | None]]:
    """Return what finds passages near to a sentence, in other documents than `own`."""
    others: Sequence[str] = reader.documents
    if not matched:
        return lambda _: ([], None)
    if own:
        rows = documents_of(reader).exclude(pk__in=own).order_by("pk")
        others = list(rows.values_list("pk", flat=True)[:MOST_DOCUMENTS])
        if not others:
            return lambda _: ([], None)

    def near(text: str) -> tuple[list[Evidence], float | None]:
        result = search(
            text,
            collections=reader.collections,
            languages=reader.languages,
            audience=reader.audience,
            documents=others,
            spoken=surely(text),
            reads=False,
            limit=matched,
        )
        if result.no_context:
            return [], None
        certainty = result.stats.get("certainty")
        return [of_passage(each) for each in result.passages], certainty

    return near
