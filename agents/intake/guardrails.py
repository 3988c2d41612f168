"""Guardrails: decides whether a question is safe and in scope, by the exemplars near to it."""

import re

from django.conf import settings

from agents.attributes import Reason
from agents.contract import View, Writes, agent
from agents.intake.exemplars import votes, worth
from agents.names import Role
from agents.terms import SENTENCE_ENDS
from knowledge.embedding import encode
from knowledge.errors import EmbeddingUnavailable

# Each kind of question that is declined is also the name of a file of exemplars.
UNSAFE = (Reason.HARMFUL_CONTENT, Reason.SYSTEM_ABUSE, Reason.INAPPROPRIATE)
BENIGN = "benign"
# By how much the votes for a kind must exceed the benign ones, as the cosine of one exemplar.
# Measured on 2,000 real support questions (at most 1 % declined at "medium"), 250 harmless
# questions that sound dangerous, 200 dangerous ones and 200 attempts at injection.
THRESHOLDS = {"low": 0.55, "medium": 0.48, "high": 0.42}
# A sentence in a longer text is judged by itself as well, but with more reserve.
RESERVE = 0.14
MOST_SENTENCES = 12
SENTENCE_END = re.compile(rf"(?<=[{SENTENCE_ENDS}])\s+|\n+")
# So near to the description of the deployment's scope, a question is its business.
IN_SCOPE = 0.35


def _pieces(question: str, said: str) -> list[str]:
    """The question, and by itself each sentence of it and of what was literally said."""
    whole = f"{question}\n{said}" if said not in question else question
    sentences = [part for part in SENTENCE_END.split(whole) if part.strip()]
    return [question, *sentences[:MOST_SENTENCES]] if len(sentences) > 1 else [question]


def _kinds(question: str) -> tuple[Reason, ...]:
    """The kinds of question this deployment declines, given what it says about its scope."""
    if not settings.DOMAIN_SCOPE:
        return (*UNSAFE, Reason.OFF_TOPIC)
    scope, asked = encode([f"{settings.DOMAIN_NAME} {settings.DOMAIN_SCOPE}", question])
    return UNSAFE if scope @ asked >= IN_SCOPE else (*UNSAFE, Reason.OFF_TOPIC, Reason.OUT_OF_SCOPE)


def _worst(question: str, said: str) -> tuple[Reason, float]:
    """The kind the question is nearest to, and by how much it is nearer than to anything benign."""
    kinds = _kinds(question)
    pieces = _pieces(question, said)
    ranked = [
        (kind, worth(vote[kind.value] - vote[BENIGN]) - (RESERVE if place else 0))
        for place, vote in enumerate(votes(pieces, [*(kind.value for kind in kinds), BENIGN]))
        # What is off topic shows in the whole question only.
        for kind in (UNSAFE if place else kinds)
    ]
    return max(ranked, key=lambda pair: pair[1])


def _declined(reason: Reason, confidence: float, analysis: str) -> Writes:
    return {
        "guardrails_passed": False,
        "within_scope": reason in UNSAFE,
        "guardrails_confidence": confidence,
        "guardrails_analysis": analysis,
        "needs_clarification": True,
        "clarification_reason": reason,
        "clarification_message": "",
    }


@agent(
    Role.GUARDRAILS,
    reads=("canonical_question", "text_eng", "text", "current_time"),
    writes=(
        "guardrails_passed",
        "within_scope",
        "guardrails_confidence",
        "guardrails_analysis",
    ),
)
def judge(view: View) -> Writes:
    """Pass a question unless it is clearly nearer to a declined kind than to a benign one.

    The exemplars are mostly English, as is what the embedding model understands: other
    languages pass unless they are close to the few foreign exemplars there are.
    """
    question = view.canonical_question or view.text_eng or view.text or ""
    try:
        reason, nearness = _worst(question, view.text_eng or view.text or "")
    except EmbeddingUnavailable as error:
        # What cannot be judged is declined politely rather than let through.
        return _declined(Reason.SCOPE_UNCLEAR, 0.0, f"not judged: {error}")
    threshold = THRESHOLDS[settings.GUARDRAILS_STRICTNESS]
    confidence = min(1.0, 0.5 + abs(nearness - threshold))
    analysis = f"{reason.value}: {nearness:.2f} of {threshold:.2f}"
    if nearness >= threshold:
        return _declined(reason, confidence, analysis)
    return {
        "guardrails_passed": True,
        "within_scope": True,
        "guardrails_confidence": confidence,
        "guardrails_analysis": analysis,
    }
