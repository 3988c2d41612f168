"""Obligation list: an answer that no model wrote, of quotations with what is known of each.

What is prescribed, where nothing was judged; or what specialists found, with their verdicts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from agents.analysis.evidence import references
from agents.analysis.obligations import Obligation, Obligations
from agents.analysis.shapes import Checklist, Evidence, Given, Item, Verdict, Verdicts
from agents.attributes import Citation, SourceReference
from agents.contract import Writes
from agents.documentation.citations.check import citation, support
from agents.documentation.passages import with_sources
from agents.names import Role
from agents.words import Phrase
from knowledge.embedding import similarities
from knowledge.errors import EmbeddingUnavailable
from knowledge.sentences import split_sentences

# How sure a list can be of what it is asked for: it holds what it holds, and answers nothing.
CONFIDENCE = 0.5
CERTAINTY: Mapping[str, Phrase] = {
    "high": Phrase.NEAR_SURELY,
    "medium": Phrase.NEAR_LIKELY,
    "low": Phrase.NEAR_PERHAPS,
}
SAID: Mapping[Verdict, Phrase] = {
    "compliant": Phrase.VERDICT_COMPLIANT,
    "gap": Phrase.VERDICT_GAP,
    "violation": Phrase.VERDICT_VIOLATION,
}


def listed(found: Obligations, language: str) -> Writes:
    """Return each obligation with the nearest place of another document, as an answer."""
    shown = [each for each in found.obligations if each.evidence in found.evidence]
    ids = dict.fromkeys(
        name
        for each in shown
        for name in (each.evidence, *_nearest(each))
        if name in found.evidence
    )
    marked = dict(zip(ids, references(found.evidence[name] for name in ids), strict=True))
    lines: list[str] = []
    citations: list[Citation] = []
    for each in shown:
        lines.append(_quoted("- ", each.requirement, marked[each.evidence], citations))
        lines += [
            _quoted("  - ", _nearest_to(each.requirement, marked[name]), marked[name], citations)
            + f" ({CERTAINTY[each.certainty].in_language(language)})"
            for name in _nearest(each)
        ] or [f"  - {Phrase.NOTHING_NEAR.in_language(language)}"]
    report = {"obligations": found.model_dump(mode="json", exclude={"evidence"})}
    writes = _answer(Phrase.OBLIGATIONS, lines, marked.values(), citations, language)
    return writes | {"synthesis_report": report}


def found_listed(
    found: Mapping[Role, Given], cited: Sequence[Evidence], language: str, undone: Sequence[str]
) -> Writes | None:
    """Return the places that specialists named, as an answer; None where they named none.

    A requirement stands with its verdict, and below it what was found of it; what was left undone
    comes last.
    """
    marked = dict(zip((each.id for each in cited), references(cited), strict=True))
    lines: list[str] = []
    citations: list[Citation] = []
    for lead, words, names, verdict in _findings(found):
        said = f" ({SAID[verdict].in_language(language)})" if verdict else ""
        for reference in [marked[name] for name in names if name in marked]:
            line = _quoted(lead, _nearest_to(words, reference), reference, citations) + said
            if line not in lines:
                lines.append(line)
    if not lines:
        return None
    lines += [line for each in undone for line in ("", each)]
    return _answer(Phrase.FOUND_LISTED, lines, marked.values(), citations, language)


def _findings(
    found: Mapping[Role, Given],
) -> Iterator[tuple[str, str, Sequence[str], Verdict | None]]:
    """Yield how far in a line stands, what it is about, its passages, and a verdict."""
    checklist = cast("Checklist | None", found.get(Role.REQUIREMENT_EXTRACTOR))
    judged = cast("Verdicts | None", found.get(Role.COMPLIANCE))
    verdicts = {each.requirement_id: each for each in judged.verdicts} if judged else {}
    for requirement in checklist.requirements if checklist else ():
        verdict = verdicts.get(requirement.id)
        said = verdict.verdict if verdict else None
        yield "- ", requirement.requirement, requirement.evidence[:1], said
        if verdict:
            yield "  - ", requirement.requirement, verdict.evidence, None
    beside = [role for role in found if role not in (Role.REQUIREMENT_EXTRACTOR, Role.COMPLIANCE)]
    # What was only looked up is of use where nothing was made of it.
    for role in beside if not verdicts else ():
        for item in found[role].items:
            yield "- ", _words(item), item.evidence[:1], None


def _words(item: Item) -> str:
    """What an item says, to find the sentence of its passage by."""
    values: dict[str, Any] = item.model_dump(exclude={"evidence"})
    return max((value for value in values.values() if isinstance(value, str)), key=len, default="")


def _answer(
    lead: Phrase,
    lines: Sequence[str],
    marked: Collection[SourceReference],
    citations: Sequence[Citation],
    language: str,
) -> Writes:
    used = {each.marker for each in citations}
    text = "\n".join([lead.in_language(language), "", *lines])
    return with_sources(text, [each for each in marked if each.marker in used], language) | {
        "citations_used": citations,
        "source_references": list(marked),
        "generation_confidence": CONFIDENCE,
        "validation_result": {},
        "answer_form": "closest",
        "suggested_actions": [],
    }


def _nearest(obligation: Obligation) -> Sequence[str]:
    return [match.evidence for match in obligation.matches[:1]]


def _quoted(lead: str, words: str, reference: SourceReference, citations: list[Citation]) -> str:
    """A line that quotes a passage, whose citation is added to the others."""
    quote = " ".join(words.split())
    citations.append(citation(reference, quote, support(quote, reference.text)))
    return f"{lead}{quote} [{reference.marker}]"


def _nearest_to(words: str, reference: SourceReference) -> str:
    """The sentence of a passage that is nearest to what is said."""
    sentences = split_sentences(reference.text) or [reference.text]
    if len(sentences) == 1:
        return sentences[0]
    try:
        cosines = similarities(words, sentences, is_foreign=False)
    except EmbeddingUnavailable:
        return sentences[0]
    return sentences[int(cosines.argmax())]
