"""Quality: decides whether an answer may go out, is written again, or needs another search."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import Citation, Reason, SearchStats, SourceReference, Unit
from agents.contract import View, Writes, llm_agent
from agents.documentation.citations.check import left_out, within
from agents.documentation.citations.statements import (
    leading_to,
    novelty,
    pieces,
    without,
    without_markers,
)
from agents.documentation.passages import with_heading, with_sources, without_own_list
from agents.documentation.response import ANSWERS, Assignment, quote
from agents.documentation.verification import Verification, verify
from agents.llm.model import Model
from agents.names import Role
from agents.words import ENGLISH, content_words
from knowledge.embedding import similarities
from knowledge.errors import EmbeddingUnavailable
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
# An answer that kept no more of its statements is torn. Of 26 that a model of 1.5 billion
# parameters wrote and its own review sent back, those that lost one of ten or eighteen read well.
TORN = 0.75


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
    generation_error: str = ""
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
        "answer_worth",
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
    """Let the model judge the answer; what the passages do not hold is never approved.

    What stands in the passages word for word may be torn out of what it belongs to, or a reviewer
    is mistaken: where that is most of what is called wrong, the answer is written again once, and
    then goes out with reservations. That most of an answer is torn out is not believed again, and
    that all of it is, never.
    """
    verification = _verified(view)
    if not verification.statements or verification.absent:
        return review(view)
    judgement = _judged(view, llm, verification)
    wrong = [
        statement
        for number, statement in enumerate(verification.all_statements, start=1)
        if number in judgement.unsupported
    ]
    is_denied = verification.is_denied(wrong)
    if is_denied and len(wrong) == len(verification.all_statements):
        return review(view)
    if is_denied and view.quality_returns:
        reviewed = review(view)
        is_most = 2 * len(wrong) > len(verification.all_statements)
        return reviewed if is_most else reviewed | _without_approval(reviewed)
    out = [] if is_denied else wrong
    corrected = verification.without(out)
    writes: Writes = {
        "quality_score": judgement.score,
        "answer_worth": _worth(view, verification.left(out)),
        "needs_clarification": False,
    }
    is_sure = (view.search_stats.get("certainty") or 0.0) >= ANSWERS
    writes |= _decided(judgement, verification, view, asks=not is_sure)
    if writes.get("quality_decision") == "approve" and not wrong:
        corrected = corrected.reviewed()
        writes["citations_used"] = _reviewed(view.citations_used)
    writes["validation_result"] = corrected.result(judged=judgement.decision)
    if not wrong or writes["needs_clarification"]:
        return writes | _reserved(view, writes)
    back = _back(writes, wrong)
    return writes | (back if is_denied else _send_back_corrected(view, llm, writes | back, wrong))


def _verified(view: Answer) -> Verification:
    return verify(
        view.response,
        view.citations_used,
        view.source_references,
        view.language,
        view.validation_result,
    )


def _judged(view: Answer, llm: Model, verification: Verification) -> Judgement:
    cited = {each.marker for each in view.citations_used}
    references = [each for each in view.source_references if each.marker in cited]
    return llm.ask(
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


@judge.without_model
def review(view: Answer) -> Writes:
    """Score support and relevance; send back what is not supported, search again what misses.

    What is mostly in other words or another language than its passages goes out with reservations.
    """
    verification = _verified(view)
    if view.answer_form != "written" and verification.holds:
        return _vouched(view, verification)
    is_foreign = bool(view.search_stats.get("is_foreign"))
    quotes = [each.quote for each in view.citations_used]
    closeness = _relevance(view.canonical_question, quotes, is_foreign=is_foreign)
    score = verification.support * (0.5 + 0.5 * closeness)
    writes: Writes = {
        "quality_score": score,
        "answer_worth": _worth(view, verification),
        "validation_result": verification.result(relevance=round(closeness, 3)),
    }
    if verification.absent:
        return writes | _sent_back(verification.absent)
    if verification.uncited and score < settings.QUALITY_SCORE_THRESHOLD:
        return writes | _sent_back(verification.uncited)
    if verification.is_open:
        return writes | {"quality_decision": "approve_with_reservations", "quality_analysis": ""}
    if score >= settings.QUALITY_SCORE_THRESHOLD:
        writes |= {"quality_decision": "approve", "quality_analysis": ""}
        return writes | _reserved(view, writes)
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
        "answer_worth": _worth(view, verification),
        "quality_decision": decision,
        "quality_analysis": "",
        "validation_result": verification.result(),
    }


def _reserved(view: Answer, writes: Writes) -> Writes:
    """The decision about an answer that was cut: what is missing of it, nobody knows."""
    return _without_approval(writes) if view.generation_error else {}


def _without_approval(writes: Writes) -> Writes:
    """Reservations in place of an approval."""
    if writes.get("quality_decision") != "approve":
        return {}
    return {"quality_decision": "approve_with_reservations"}


def _worth(view: Answer, verification: Verification) -> float:
    """What a program can tell an answer from another one by, 0 to 1, whatever a reviewer says.

    How far its statements hold, how many of them were kept, how near they come to the question, and
    how much of the answer it does not say twice.
    """
    quotes = [each.quote for each in verification.statements]
    is_foreign = bool(view.search_stats.get("is_foreign"))
    try:
        closeness = _relevance(view.canonical_question, quotes, is_foreign=is_foreign)
    except EmbeddingUnavailable:
        closeness = 1.0
    said = novelty(without_own_list(view.response))
    return verification.support * verification.kept * closeness * said


def _relevance(question: str, quotes: Sequence[str], *, is_foreign: bool) -> float:
    """How much of the way from unrelated to to the point the answer is, 0 to 1."""
    answer = " ".join(dict.fromkeys(map(without_markers, quotes)))
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
    judgement: Judgement, verification: Verification, view: Answer, *, asks: bool
) -> Writes:
    """The model's decision, as far as its own score allows it.

    Not `asks`: search is sure of the place, so that nobody is asked for more. The answer goes out
    with reservations, or back where something in it is wrong.
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
            content_words(view.canonical_question)
        )
    return writes


def _back(writes: Writes, wrong: Sequence[str]) -> Writes:
    """Send an answer back for what a model found wrong with it."""
    back = _sent_back([*filter(None, [writes["quality_analysis"]]), *wrong])
    if writes["quality_decision"] == "research":
        back["quality_decision"] = "research"
    return back


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


def _send_back_corrected(view: Answer, llm: Model, back: Writes, wrong: Sequence[str]) -> Writes:
    """Send the answer back; should it go out after all, it does so without what is wrong.

    The last time the place is quoted that search put first, where the best answer lost much and
    search is surer than what is left of it is worth.
    """
    shortened = _without_statements(view, wrong)
    if not shortened:
        back |= {"quality_score": 0.0, "answer_worth": 0.0}
    is_same = view.response == view.best_answer.get("response")
    if is_same or view.quality_returns >= settings.MAX_QUALITY_RETRIES:
        best = max(back, view.best_answer, key=lambda each: each.get("answer_worth") or 0.0)
        worth = best.get("answer_worth") or 0.0
        is_torn = _kept(best.get("validation_result") or {}) <= TORN
        if (is_torn or not worth) and (quoted := _quotation(view, llm, worth)) is not None:
            return quoted
    if shortened:
        llm.tokens.replace(shortened["response"])
    return back | (shortened or {})


def _kept(result: Mapping[str, Any]) -> float:
    """The share of what a model stated that neither the check nor a reviewer took out."""
    kept = sum(result.get(each, 0) for each in ("verified", "reviewed", "weak", "uncited"))
    removed = len(result.get("removed", []))
    return kept / (kept + removed) if removed else 1.0


def _quotation(view: Answer, llm: Model, worth: float) -> Writes | None:
    """The place that search put first, where it is worth more than `worth`; else None.

    Where nothing is left of an answer it is quoted also when it is only the closest, or the user is
    asked for what is missing.
    """
    shared = {name: getattr(view, name) for name in Assignment.model_fields if hasattr(view, name)}
    quoted = quote(Assignment(**shared))
    certainty = quoted["generation_confidence"]
    if worth and (quoted.get("answer_form") != "quoted" or certainty <= worth):
        return None
    if "response" not in quoted:
        return quoted | {"quality_score": 0.0, "answer_worth": 0.0}
    llm.tokens.replace(quoted["response"])
    return {name: value for name, value in quoted.items() if name != "generation_error"} | {
        "quality_score": certainty,
        "answer_worth": certainty,
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
    announcing = [*leading_to(parts, dropped)]
    citations = left_out(citations, announcing)
    cited = {citation.marker: citation for citation in citations}
    body = without(parts, dropped + announcing).strip()
    return with_sources(body, cited.values(), view.language) | {"citations_used": citations}
