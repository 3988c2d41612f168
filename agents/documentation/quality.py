"""Quality: decides whether an answer may go out, is written again, or needs another search."""

from typing import Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import Reason
from agents.contract import View, Writes, llm_agent
from agents.documentation.checking import said_by
from agents.documentation.pieces import pieces
from agents.documentation.reviewing import Facts, facts, relevance
from agents.documentation.sources import without_own_list
from agents.intake.shapes import Share
from agents.llm.model import Model
from agents.names import Role
from agents.terms import content_words
from prompts.prompt import Block, Prompt

PROMPT = Prompt("quality", "question", "passages", "answer", "statements", "removed", "threshold")
LONGEST = 1500
HARDLY = "The answer is supported but hardly to the point."


class Judgement(BaseModel):
    """What the model says of the answer."""

    analysis: str
    score: Share
    decision: Literal["approve", "research", "regenerate", "clarify"]
    refined_query: str
    missing: str


@llm_agent(
    Role.QUALITY,
    reads=(
        "response",
        "search_context",
        "canonical_question",
        "source_references",
        "citations_used",
        "validation_result",
    ),
    writes=(
        "quality_score",
        "quality_decision",
        "quality_analysis",
        "validation_result",
        "refined_query",
    ),
)
def judge(view: View, llm: Model) -> Writes:
    """Let the model judge the answer; what the passages do not hold is never approved."""
    found = facts(view)
    if not found.statements or found.refused():
        return review(view)
    references = view.source_references or []
    body = without_own_list(view.response or "")
    said = llm.ask(
        PROMPT,
        Judgement,
        documents=tuple(dict.fromkeys(r.document_id for r in references)),
        question=view.canonical_question or "",
        passages=[Block("passage", said_by(r), {"marker": r.marker}) for r in references],
        answer=body,
        statements=_statements(found, body),
        removed=[Block("removed", each) for each in found.noted.get("removed", [])],
        threshold=str(settings.QUALITY_SCORE_THRESHOLD),
    )
    return {
        "quality_score": said.score,
        "validation_result": found.result(judged=said.decision),
        "needs_clarification": False,
    } | _decided(said, view.canonical_question or "")


def _statements(found: Facts, body: str) -> list[Block]:
    """Each statement of the answer with its markers and what the check says of it."""
    blocks = [
        Block("statement", each.quote, {"markers": " ".join(each.markers), "status": each.status})
        for each in found.statements
    ]
    cited = {each.quote for each in found.statements}
    bare = [each.said for each in pieces(body) if each.claims and not each.markers]
    uncited = [each for each in bare if each not in cited]
    return blocks + [Block("statement", each, {"status": "uncited"}) for each in uncited]


def _decided(said: Judgement, question: str) -> Writes:
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
    writes: Writes = {"quality_decision": decision, "quality_analysis": analysis or HARDLY}
    if decision == "approve":
        writes["quality_analysis"] = analysis
    if decision == "research":
        writes["refined_query"] = said.refined_query.strip()[:300] or " ".join(
            content_words(question)
        )
    return writes


@judge.without_model
def review(view: View) -> Writes:
    """Score support and relevance; send back what is not supported, search again what misses."""
    found = facts(view)
    near = relevance(view)
    score = found.support * (0.5 + 0.5 * near)
    writes: Writes = {
        "quality_score": score,
        "validation_result": found.result(relevance=round(near, 3)),
    }
    if refused := found.refused():
        return writes | refused
    if score >= settings.QUALITY_SCORE_THRESHOLD:
        return writes | {"quality_decision": "approve", "quality_analysis": ""}
    return writes | {
        "quality_decision": "research",
        "quality_analysis": HARDLY,
        "refined_query": " ".join(content_words(view.canonical_question or "")),
    }
