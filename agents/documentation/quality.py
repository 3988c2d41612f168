"""Quality: decides whether an answer may go out, is written again, or needs another search."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import Citation, CitationStatus, Reason, SourceReference, Unit
from agents.contract import View, Writes, llm_agent
from agents.documentation.citations.check import SUPPORT, Evidence, within
from agents.documentation.citations.markers import markers, normalised, without_markers
from agents.documentation.citations.statements import pieces, without
from agents.documentation.passages import said_by, source_list, sources_of, without_own_list
from agents.llm.model import Model
from agents.names import Role
from agents.words import ENGLISH, Phrase, content_words
from knowledge.embedding import encode
from prompts.prompt import Block, Prompt

# Cosine of a question and its answer from which on the answer counts as wholly to the point:
# all-MiniLM-L6-v2.
TO_THE_POINT = 0.5


@dataclass(frozen=True)
class Statement:
    """A statement of the answer with its markers and what their passages say of it."""

    quote: str
    markers: tuple[str, ...]
    status: CitationStatus


@dataclass(frozen=True)
class Facts:
    """What holds whatever a model thinks of it."""

    statements: list[Statement]
    uncited: list[str]  # statements without a marker
    unknown: list[str]  # markers nobody gave
    noted: dict[str, Any]  # what response found and took out

    @property
    def unsupported(self) -> list[str]:
        """The statements that no passage they cite says."""
        return [each.quote for each in self.statements if each.status == "unsupported"]

    @property
    def sayings(self) -> list[str]:
        """Every statement, as a reviewer is given them: the first has the number 1."""
        return [each.quote for each in self.statements] + self.uncited

    @property
    def doubted(self) -> list[str]:
        """The statements nothing vouches for."""
        return [each.quote for each in self.statements if each.status != "verified"] + self.uncited

    @property
    def open(self) -> bool:
        """Whether of most statements no rule can tell if they hold."""
        return 2 * sum(each.status == "weak" for each in self.statements) > len(self.statements)

    @property
    def support(self) -> float:
        """Mean support of the statements, 0 to 1; one without a marker has none."""
        total = sum(SUPPORT[each.status] for each in self.statements)
        count = len(self.statements) + len(self.uncited)
        return total / count if count else 0.0

    def without(self, wrong: Collection[str]) -> "Facts":
        """Return what holds when some statements were found wrong and taken out."""
        statements = [
            replace(each, status="unsupported") if each.quote in wrong else each
            for each in self.statements
        ]
        noted = self.noted | {"removed": [*self.noted.get("removed", []), *wrong]}
        uncited = [each for each in self.uncited if each not in wrong]
        return replace(self, statements=statements, uncited=uncited, noted=noted)

    def reviewed(self) -> "Facts":
        """Return what holds when a reviewer found in the passages what no rule could tell."""
        statements = [
            replace(each, status="reviewed") if each.status == "weak" else each
            for each in self.statements
        ]
        return replace(self, statements=statements)

    def refused(self) -> Writes | None:
        """Send an answer back that cites what is not there; None when all of it is."""
        sayings = self.unsupported + [f"[{marker}]" for marker in self.unknown]
        return sent_back(sayings) if sayings else None

    def result(self, **more: object) -> dict[str, Any]:
        """Return the counts as JSON values."""
        each = [statement.status for statement in self.statements]
        return self.noted | {
            "citations": len(each),
            "verified": each.count("verified"),
            "reviewed": each.count("reviewed"),
            "weak": each.count("weak"),
            "unsupported": each.count("unsupported"),
            "uncited": len(self.uncited),
            "unknown_markers": self.unknown,
            "support": round(self.support, 3),
            **more,
        }


def sent_back(sayings: Sequence[str]) -> Writes:
    """Send an answer back for what it says, each statement on a line."""
    return {"quality_decision": "regenerate", "quality_analysis": "\n".join(sayings)}


def facts(
    answer: str,
    citations: Sequence[Citation],
    references: Sequence[SourceReference],
    noted: Mapping[str, Any],
    language: str,
) -> Facts:
    """Look every citation up again rather than believe it; `noted` is what response found."""
    cited: dict[str, list[str]] = {}
    for each in citations:
        cited.setdefault(each.quote, []).append(each.marker)
    evidence = Evidence(references)
    statements = [
        Statement(quote, tuple(carried), _least(evidence.statuses(quote, carried).values()))
        for quote, carried in cited.items()
    ]
    known = {reference.marker for reference in references}
    said = markers(normalised(answer))
    unknown = [marker for marker in said if marker not in known]
    uncited = _uncited(_body(answer, language), list(cited))
    return Facts(statements, uncited, unknown, dict(noted))


def _body(answer: str, language: str) -> str:
    """The answer without what was put at its end: sources, and what the documents leave open."""
    missing = Phrase.NOT_COVERED.said_in(language, missing="\0")
    return without_own_list(answer).partition("\n\n" + missing.partition("\0")[0])[0]


def _uncited(body: str, quotes: Sequence[str]) -> list[str]:
    """The claims without a marker that are no part of what is cited."""
    claims = [each.said for each in pieces(body) if each.claims and not each.markers]
    return [each for each in claims if not any(within(each, quote) for quote in quotes)]


def _least(found: Iterable[CitationStatus]) -> CitationStatus:
    """The weakest of several verdicts: each marker promises support."""
    return min(found, key=lambda status: SUPPORT[status])


def relevance(question: str, citations: Sequence[Citation]) -> float:
    """How much of the way from unrelated to to the point the answer is, 0 to 1."""
    answer = " ".join(dict.fromkeys(without_markers(each.quote) for each in citations))
    if not question or not answer:
        return 0.0
    vectors = encode([question, answer])
    return min(1.0, max(0.0, float(vectors[0] @ vectors[1])) / TO_THE_POINT)


PROMPT = Prompt(
    "quality",
    "question",
    "wishes",
    "limitations",
    "passages",
    "answer",
    "statements",
    "removed",
    "threshold",
)
LONGEST = 1500


class Answer(View):
    """What quality reads: the answer, what it was made from, and what was noted about it."""

    response: str = ""
    search_context: str = ""
    canonical_question: str = ""
    source_references: list[SourceReference] = []
    citations_used: list[Citation] = []
    validation_result: dict[str, Any] = {}
    language: str = ENGLISH
    response_notes: list[str] = []
    limitations: list[str] = []
    quality_returns: int = 0
    best_answer: dict[str, Any] = {}


class Judgement(BaseModel):
    """What the model says of the answer."""

    analysis: str
    unsupported: list[int]
    score: Unit
    decision: Literal["approve", "research", "regenerate", "clarify"]
    refined_query: str
    missing: str


@llm_agent(
    Role.QUALITY,
    reads=Answer,
    writes=(
        "quality_score",
        "quality_decision",
        "quality_analysis",
        "validation_result",
        "refined_query",
        "response",
        "citations_used",
        "sources_used",
    ),
)
def judge(view: Answer, llm: Model) -> Writes:
    """Let the model judge the answer; what the passages do not hold is never approved."""
    found = _facts(view)
    if not found.statements or found.refused():
        return review(view)
    references = view.source_references
    said = llm.ask(
        PROMPT,
        Judgement,
        documents=tuple(dict.fromkeys(r.document_id for r in references)),
        question=view.canonical_question,
        wishes="\n".join(view.response_notes),
        limitations="\n".join(view.limitations),
        passages=[Block("passage", said_by(r), {"marker": r.marker}) for r in references],
        answer=without_own_list(view.response),
        statements=_statements(found),
        removed=[Block("removed", each) for each in found.noted.get("removed", [])],
        threshold=str(settings.QUALITY_SCORE_THRESHOLD),
    )
    wrong = [s for number, s in enumerate(found.sayings, start=1) if number in said.unsupported]
    held = found.without(wrong)
    writes: Writes = {"quality_score": said.score, "needs_clarification": False}
    writes |= _decided(said, found, view.canonical_question)
    if writes.get("quality_decision") == "approve" and not wrong:
        held = held.reviewed()
        writes["citations_used"] = _reviewed(view.citations_used)
    writes["validation_result"] = held.result(judged=said.decision)
    if not wrong or writes["needs_clarification"]:
        return writes
    return writes | _mended(view, llm, writes, wrong)


def _reviewed(citations: Sequence[Citation]) -> list[Citation]:
    """The citations of an answer that a model compared with its passages and found right."""
    return [
        each.model_copy(update={"citation_status": "reviewed"})
        if each.citation_status == "weak"
        else each
        for each in citations
    ]


def _mended(view: Answer, llm: Model, writes: Writes, wrong: Sequence[str]) -> Writes:
    """Send the answer back; should it go out after all, it does so without what is wrong."""
    back = sent_back([*filter(None, [writes["quality_analysis"]]), *wrong])
    if writes["quality_decision"] == "research":
        back["quality_decision"] = "research"
    if kept := mended(view.response, view.citations_used, wrong, view.language):
        llm.tokens.replace(kept["response"])
        return back | kept
    last = view.quality_returns >= settings.MAX_QUALITY_RETRIES
    if last and not view.best_answer.get("quality_score"):
        return {
            "needs_clarification": True,
            "clarification_reason": Reason.INSUFFICIENT_CONTEXT,
            "clarification_message": "",
            "quality_score": 0.0,
        }
    return back | {"quality_score": 0.0}


def _facts(view: Answer) -> Facts:
    return facts(
        view.response,
        view.citations_used,
        view.source_references,
        view.validation_result,
        view.language,
    )


def mended(
    answer: str, citations: Sequence[Citation], wrong: Collection[str], language: str
) -> Writes | None:
    """Return the answer without some of its statements; None when nothing cited is left."""
    kept = [each for each in citations if each.quote not in wrong]
    if not kept:
        return None
    parts = pieces(without_own_list(answer))
    cited = {each.quote for each in kept}
    dropped = [
        each
        for each in parts
        if each.kind and each.said not in cited and any(within(each.said, one) for one in wrong)
    ]
    sources = sources_of({each.marker: each for each in kept}.values())
    body = without(parts, dropped).strip()
    return {
        "response": f"{body}\n\n{source_list(sources, language)}",
        "citations_used": kept,
        "sources_used": sources,
    }


def _statements(found: Facts) -> list[Block]:
    """Each statement of the answer, numbered, with its markers and what the check says of it."""
    said = [
        {"markers": " ".join(each.markers), "status": each.status} for each in found.statements
    ] + [{"status": "uncited"} for _ in found.uncited]
    return [
        Block("statement", saying, {"number": str(number)} | attributes)
        for number, (saying, attributes) in enumerate(
            zip(found.sayings, said, strict=True), start=1
        )
    ]


def _decided(said: Judgement, found: Facts, question: str) -> Writes:
    """The model's decision, as far as its own score allows it."""
    decision = said.decision
    if decision == "clarify":
        return {
            "needs_clarification": True,
            "clarification_reason": Reason.QUALITY_INSUFFICIENT,
            "clarification_message": said.missing.strip()[:LONGEST],
            "quality_analysis": said.analysis[:LONGEST],
        }
    if decision == "approve" and said.score < settings.QUALITY_SCORE_THRESHOLD:
        decision = "research" if said.refined_query.strip() else "regenerate"
    analysis = said.analysis.strip()[:LONGEST]
    if not analysis and decision != "approve":
        analysis = "\n".join(found.doubted)
    writes: Writes = {"quality_decision": decision, "quality_analysis": analysis}
    if decision == "research":
        writes["refined_query"] = said.refined_query.strip()[:300] or " ".join(
            content_words(question)
        )
    return writes


@judge.without_model
def review(view: Answer) -> Writes:
    """Score support and relevance; send back what is not supported, search again what misses.

    What is mostly in other words or another language than its passages goes out with reservations.
    """
    found = _facts(view)
    near = relevance(view.canonical_question, view.citations_used)
    score = found.support * (0.5 + 0.5 * near)
    writes: Writes = {
        "quality_score": score,
        "validation_result": found.result(relevance=round(near, 3)),
    }
    if refused := found.refused():
        return writes | refused
    if found.uncited and score < settings.QUALITY_SCORE_THRESHOLD:
        return writes | sent_back(found.uncited)
    if found.open:
        return writes | {"quality_decision": "approve_with_reservations", "quality_analysis": ""}
    if score >= settings.QUALITY_SCORE_THRESHOLD:
        return writes | {"quality_decision": "approve", "quality_analysis": ""}
    return writes | {
        "quality_decision": "research",
        "quality_analysis": "",
        "refined_query": " ".join(content_words(view.canonical_question)),
    }
