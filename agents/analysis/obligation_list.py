"""Obligation list: an answer without a model, which says what is prescribed and judges nothing."""

from collections.abc import Mapping, Sequence

from agents.analysis.evidence import references
from agents.analysis.obligations import Obligation, Obligations
from agents.attributes import Citation, SourceReference
from agents.contract import Writes
from agents.documentation.citations.check import citation, support
from agents.documentation.passages import with_sources
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
            _quoted("  - ", _closest(each, marked[name]), marked[name], citations)
            + f" ({CERTAINTY[each.certainty].in_language(language)})"
            for name in _nearest(each)
        ] or [f"  - {Phrase.NOTHING_NEAR.in_language(language)}"]
    text = "\n".join([Phrase.OBLIGATIONS.in_language(language), "", *lines])
    return with_sources(text, marked.values(), language) | {
        "citations_used": citations,
        "source_references": list(marked.values()),
        "generation_confidence": CONFIDENCE,
        "validation_result": {},
        "answer_form": "closest",
        "suggested_actions": [],
        "synthesis_report": {"obligations": found.model_dump(mode="json", exclude={"evidence"})},
    }


def _nearest(obligation: Obligation) -> Sequence[str]:
    return [match.evidence for match in obligation.matches[:1]]


def _quoted(lead: str, words: str, reference: SourceReference, citations: list[Citation]) -> str:
    """A line that quotes a passage, whose citation is added to the others."""
    quote = " ".join(words.split())
    citations.append(citation(reference, quote, support(quote, reference.text)))
    return f"{lead}{quote} [{reference.marker}]"


def _closest(obligation: Obligation, reference: SourceReference) -> str:
    """The sentence of a passage that is nearest to an obligation."""
    sentences = split_sentences(reference.text) or [reference.text]
    if len(sentences) == 1:
        return sentences[0]
    try:
        cosines = similarities(obligation.requirement, sentences, is_foreign=False)
    except EmbeddingUnavailable:
        return sentences[0]
    return sentences[int(cosines.argmax())]
