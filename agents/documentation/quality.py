"""Quality: decides whether an answer may go out, is written again, or needs another search."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import (
    Citation,
    CitationStatus,
    Reason,
    SearchStats,
    SourceReference,
    Unit,
)
from agents.contract import View, Writes, llm_agent
from agents.documentation.citations.check import SUPPORT, Evidence, within, words_of
from agents.documentation.citations.markers import markers, normalised, without_markers
from agents.documentation.citations.statements import Piece, pieces, without
from agents.documentation.passages import with_heading, with_sources, without_own_list
from agents.documentation.response import ANSWERS, Assignment, quote
from agents.llm.model import Model
from agents.names import Role
from agents.words import ENGLISH, Phrase, content_words
from knowledge.embedding import similarities
from prompts.prompt import Block, Prompt

PROMPT = Prompt(
    "quality",
    "question",
    "wishes",
    "limitations",
    "passages",
    "statements",
    "removed",
    "threshold",
)
# Cosine of a question and its answer from which on the answer counts as wholly to the point:
# all-MiniLM-L6-v2.
TO_THE_POINT = 0.5
LONGEST = 1500


class Answer(View):
    """What quality reads: the answer, what it was made from, and what was noted about it."""

    response: str = ""
    canonical_question: str = ""
    source_references: list[SourceReference] = []
    citations_used: list[Citation] = []
    validation_result: dict[str, Any] = {}
    language: str = ENGLISH
    response_notes: list[str] = []
    limitations: list[str] = []
    quality_returns: int = 0
    best_answer: dict[str, Any] = {}
    answer_form: Literal["written", "quoted", "closest"] = "written"
    generation_confidence: float = 0.0
    search_stats: SearchStats = {}


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
        "answer_form",
        "suggested_actions",
        "generation_confidence",
    ),
)
def judge(view: Answer, llm: Model) -> Writes:
    """Let the model judge the answer; what the passages do not hold is never approved."""
    verification = verify(view)
    if not verification.statements or verification.rejection():
        return review(view)
    cited = {each.marker for each in view.citations_used}
    references = [each for each in view.source_references if each.marker in cited]
    judgement = llm.ask(
        PROMPT,
        Judgement,
        documents=tuple(dict.fromkeys(r.document_id for r in references)),
        question=view.canonical_question,
        wishes="\n".join(view.response_notes),
        limitations="\n".join(view.limitations),
        passages=[Block("passage", with_heading(r), {"marker": r.marker}) for r in references],
        statements=_statements(verification),
        removed=[Block("removed", each) for each in verification.findings.get("removed", [])],
        threshold=str(settings.QUALITY_SCORE_THRESHOLD),
    )
    wrong = [
        statement
        for number, statement in enumerate(verification.all_statements, start=1)
        if number in judgement.unsupported
    ]
    # Not all can be wrong that stands in the passages word for word: such a verdict says nothing.
    if verification.holds and len(wrong) == len(verification.statements):
        return review(view)
    corrected = verification.without(wrong)
    writes: Writes = {"quality_score": judgement.score, "needs_clarification": False}
    is_sure = (view.search_stats.get("certainty") or 0.0) >= ANSWERS
    writes |= _decided(
        judgement, verification, view.canonical_question, asks=bool(wrong) or not is_sure
    )
    if writes.get("quality_decision") == "approve" and not wrong:
        corrected = corrected.reviewed()
        writes["citations_used"] = _reviewed(view.citations_used)
    writes["validation_result"] = corrected.result(judged=judgement.decision)
    if not wrong or writes["needs_clarification"]:
        return writes
    return writes | _send_back_corrected(view, llm, writes, wrong)


@judge.without_model
def review(view: Answer) -> Writes:
    """Score support and relevance; send back what is not supported, search again what misses.

    What is mostly in other words or another language than its passages goes out with reservations.
    """
    verification = verify(view)
    if view.answer_form != "written" and verification.holds:
        return _vouched(view, verification)
    is_foreign = bool(view.search_stats.get("is_foreign"))
    closeness = _relevance(view.canonical_question, view.citations_used, is_foreign=is_foreign)
    score = verification.support * (0.5 + 0.5 * closeness)
    writes: Writes = {
        "quality_score": score,
        "validation_result": verification.result(relevance=round(closeness, 3)),
    }
    if rejection := verification.rejection():
        return writes | rejection
    if verification.uncited and score < settings.QUALITY_SCORE_THRESHOLD:
        return writes | _sent_back(verification.uncited)
    if verification.is_open:
        return writes | {"quality_decision": "approve_with_reservations", "quality_analysis": ""}
    if score >= settings.QUALITY_SCORE_THRESHOLD:
        return writes | {"quality_decision": "approve", "quality_analysis": ""}
    return writes | {
        "quality_decision": "research",
        "quality_analysis": "",
        "refined_query": " ".join(content_words(view.canonical_question)),
    }


def _vouched(view: Answer, verification: "Verification") -> Writes:
    """What stands in its passage word for word is as good as its place; the closest may not be."""
    decision = "approve" if view.answer_form == "quoted" else "approve_with_reservations"
    return {
        "quality_score": view.generation_confidence,
        "quality_decision": decision,
        "quality_analysis": "",
        "validation_result": verification.result(),
    }


@dataclass(frozen=True)
class Statement:
    """A statement of the answer with its markers and what their passages say of it."""

    quote: str
    markers: tuple[str, ...]
    status: CitationStatus


@dataclass(frozen=True)
class Verification:
    """What holds whatever a model thinks of it."""

    statements: list[Statement]
    uncited: list[str]  # statements without a marker
    unknown: list[str]  # markers nobody gave
    findings: dict[str, Any]  # what response found and took out

    @property
    def unsupported(self) -> list[str]:
        """The statements that no passage they cite says."""
        return [each.quote for each in self.statements if each.status == "unsupported"]

    @property
    def all_statements(self) -> list[str]:
        """Every statement, as a reviewer is given them: the first has the number 1."""
        return [each.quote for each in self.statements] + self.uncited

    @property
    def doubted(self) -> list[str]:
        """The statements nothing vouches for."""
        return [each.quote for each in self.statements if each.status != "verified"] + self.uncited

    @property
    def holds(self) -> bool:
        """Whether all that is said stands in a passage word for word."""
        return bool(self.statements) and not self.doubted and not self.unknown

    @property
    def is_open(self) -> bool:
        """Whether of most statements no rule can tell if they hold."""
        return 2 * sum(each.status == "weak" for each in self.statements) > len(self.statements)

    @property
    def support(self) -> float:
        """Mean support of the statements, 0 to 1; without a marker or off topic they have none."""
        off_topic = self.findings.get("off_topic", [])
        total = sum(SUPPORT[e.status] for e in self.statements if e.quote not in off_topic)
        count = len(self.statements) + len(self.uncited)
        return total / count if count else 0.0

    def without(self, wrong: Collection[str]) -> "Verification":
        """Return what holds when some statements were found wrong and taken out."""
        statements = [
            replace(statement, status="unsupported") if statement.quote in wrong else statement
            for statement in self.statements
        ]
        findings = self.findings | {"removed": [*self.findings.get("removed", []), *wrong]}
        uncited = [statement for statement in self.uncited if statement not in wrong]
        return replace(self, statements=statements, uncited=uncited, findings=findings)

    def reviewed(self) -> "Verification":
        """Return what holds when a reviewer found in the passages what no rule could tell."""
        statements = [
            replace(statement, status="reviewed") if statement.status == "weak" else statement
            for statement in self.statements
        ]
        return replace(self, statements=statements)

    def rejection(self) -> Writes | None:
        """Send an answer back that cites what is not there; None when all of it is."""
        quotes = self.unsupported + [f"[{marker}]" for marker in self.unknown]
        return _sent_back(quotes) if quotes else None

    def result(self, **more: object) -> dict[str, Any]:
        """Return the counts as JSON values."""
        counts = [statement.status for statement in self.statements]
        return self.findings | {
            "citations": len(counts),
            "verified": counts.count("verified"),
            "reviewed": counts.count("reviewed"),
            "weak": counts.count("weak"),
            "unsupported": counts.count("unsupported"),
            "uncited": len(self.uncited),
            "unknown_markers": self.unknown,
            "support": round(self.support, 3),
            **more,
        }


def verify(view: Answer) -> Verification:
    """Look every citation up again rather than believe it."""
    references = view.source_references
    cited: dict[str, list[str]] = {}
    for citation in view.citations_used:
        cited.setdefault(citation.quote, []).append(citation.marker)
    evidence = Evidence(references, language=view.language)
    statements = [
        Statement(quote, tuple(carried), _least(evidence.statuses(quote, carried).values()))
        for quote, carried in cited.items()
    ]
    known = {reference.marker for reference in references}
    unknown = [marker for marker in markers(normalised(view.response)) if marker not in known]
    uncited = _uncited(_body(view.response, view.language), list(cited))
    return Verification(statements, uncited, unknown, dict(view.validation_result))


def _body(answer: str, language: str) -> str:
    """The answer without what was put at its end: sources, and what the documents leave open."""
    missing = Phrase.NOT_COVERED.in_language(language, missing="\0")
    return without_own_list(answer).partition("\n\n" + missing.partition("\0")[0])[0]


def _uncited(body: str, quotes: Sequence[str]) -> list[str]:
    """The claims without a marker that are no part of what is cited."""
    claims = [each for each in pieces(body) if each.claims and not each.markers]
    return [each.statement for each in claims if not any(_is_part(each, quote) for quote in quotes)]


def _is_part(piece: Piece, quote: str) -> bool:
    """Whether a piece stands in a quote; of a row, which names its columns there, each word."""
    if piece.kind == "row":
        return set(words_of(piece.statement)) <= set(words_of(quote))
    return within(piece.statement, quote)


def _least(statuses: Iterable[CitationStatus]) -> CitationStatus:
    """The weakest of several verdicts: each marker promises support."""
    return min(statuses, key=lambda status: SUPPORT[status])


def _relevance(question: str, citations: Sequence[Citation], *, is_foreign: bool) -> float:
    """How much of the way from unrelated to to the point the answer is, 0 to 1."""
    answer = " ".join(dict.fromkeys(without_markers(each.quote) for each in citations))
    if not question or not answer:
        return 0.0
    (cosine,) = similarities(question, [answer], is_foreign=is_foreign)
    return min(1.0, max(0.0, float(cosine)) / TO_THE_POINT)


def _statements(verification: Verification) -> list[Block]:
    """Each statement of the answer, numbered, with its markers and what the check says of it."""
    details = [
        {"markers": " ".join(statement.markers), "status": statement.status}
        for statement in verification.statements
    ] + [{"status": "uncited"} for _ in verification.uncited]
    return [
        Block("statement", statement, {"number": str(number)} | attributes)
        for number, (statement, attributes) in enumerate(
            zip(verification.all_statements, details, strict=True), start=1
        )
    ]


def _decided(
    judgement: Judgement, verification: Verification, question: str, *, asks: bool
) -> Writes:
    """The model's decision, as far as its own score allows it.

    Not `asks`: search is sure of the place and nothing said is wrong, so that nobody is asked for
    more; the answer goes out with reservations.
    """
    decision = judgement.decision
    if decision == "clarify" and not asks:
        analysis = judgement.analysis.strip()[:LONGEST]
        return {"quality_decision": "approve_with_reservations", "quality_analysis": analysis}
    if decision == "clarify":
        return {
            "needs_clarification": True,
            "clarification_reason": Reason.QUALITY_INSUFFICIENT,
            "clarification_message": judgement.missing.strip()[:LONGEST],
            "quality_analysis": judgement.analysis[:LONGEST],
        }
    if decision == "approve" and judgement.score < settings.QUALITY_SCORE_THRESHOLD:
        decision = "research" if judgement.refined_query.strip() else "regenerate"
    analysis = judgement.analysis.strip()[:LONGEST]
    if not analysis and decision != "approve":
        analysis = "\n".join(verification.doubted)
    writes: Writes = {"quality_decision": decision, "quality_analysis": analysis}
    if decision == "research":
        writes["refined_query"] = judgement.refined_query.strip()[:300] or " ".join(
            content_words(question)
        )
    return writes


def _sent_back(quotes: Sequence[str]) -> Writes:
    """Send an answer back for what it says, each statement on a line."""
    return {"quality_decision": "regenerate", "quality_analysis": "\n".join(quotes)}


def _reviewed(citations: Sequence[Citation]) -> list[Citation]:
    """The citations of an answer that a model compared with its passages and found right."""
    return [
        citation.model_copy(update={"citation_status": "reviewed"})
        if citation.citation_status == "weak"
        else citation
        for citation in citations
    ]


def _send_back_corrected(view: Answer, llm: Model, writes: Writes, wrong: Sequence[str]) -> Writes:
    """Send the answer back; should it go out after all, it does so without what is wrong."""
    back = _sent_back([*filter(None, [writes["quality_analysis"]]), *wrong])
    if writes["quality_decision"] == "research":
        back["quality_decision"] = "research"
    if shortened := _without_statements(view, wrong):
        llm.tokens.replace(shortened["response"])
        return back | shortened
    last = view.quality_returns >= settings.MAX_QUALITY_RETRIES
    if last and not view.best_answer.get("quality_score"):
        return _quotation(view, llm)
    return back | {"quality_score": 0.0}


def _quotation(view: Answer, llm: Model) -> Writes:
    """The place that search put first, where nothing is left of an answer."""
    shared = {name: getattr(view, name) for name in Assignment.model_fields if hasattr(view, name)}
    quoted = quote(Assignment(**shared))
    if "response" not in quoted:
        return quoted | {"quality_score": 0.0}
    llm.tokens.replace(quoted["response"])
    return {name: value for name, value in quoted.items() if name != "generation_error"} | {
        "quality_score": quoted["generation_confidence"],
        "quality_decision": "approve_with_reservations",
        "quality_analysis": "",
    }


def _without_statements(view: Answer, wrong: Collection[str]) -> Writes | None:
    """Return the answer without some of its statements; None when nothing cited is left."""
    citations = [each for each in view.citations_used if each.quote not in wrong]
    if not citations:
        return None
    parts = pieces(without_own_list(view.response))
    quotes = {citation.quote for citation in citations}
    dropped = [
        piece
        for piece in parts
        if piece.kind
        and piece.statement not in quotes
        and any(within(piece.statement, one) for one in wrong)
    ]
    cited = {citation.marker: citation for citation in citations}
    body = without(parts, dropped).strip()
    return with_sources(body, cited.values(), view.language) | {"citations_used": citations}
