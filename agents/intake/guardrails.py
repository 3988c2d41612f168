"""Guardrails: decides whether a question is safe and in scope."""

from typing import Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import Reason, Unit
from agents.contract import View, Writes, llm_agent
from agents.intake.exemplars import UNSAFE, worst
from agents.intake.history import day, stamp
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure
from agents.names import Role
from knowledge.errors import EmbeddingUnavailable
from prompts.prompt import Prompt

PROMPT = Prompt(
    "guardrails",
    "domain",
    "scope",
    "strictness",
    "current_time",
    "question",
    "translated",
    "original",
)
# By how much the votes for a kind must exceed the benign ones, as the cosine of one exemplar.
# Measured on 2,000 real support questions (at most 1 % declined at "medium"), 250 harmless
# questions that sound dangerous, 200 dangerous ones and 200 attempts at injection.
THRESHOLDS = {"low": 0.55, "medium": 0.48, "high": 0.42}
# So far beyond the threshold a question is declined even if a model lets it pass: it may have been
# talked into that. At "medium" none of 1,388 real questions lies there, 9 of 250 harmless ones that
# sound dangerous, 95 of 200 dangerous ones and 47 of 251 attempts at injection.
CLEARLY = 0.12


class Question(View):
    """What guardrails reads: the question as it is understood, and as it was said."""

    canonical_question: str = ""
    text_eng: str = ""
    text: str = ""
    current_time: str = ""


class Judgement(BaseModel):
    """What the model says of the question."""

    analysis: str
    category: Literal[
        "none", "harmful_content", "system_abuse", "inappropriate", "out_of_scope", "off_topic"
    ]
    confidence: Unit


@llm_agent(
    Role.GUARDRAILS,
    reads=Question,
    writes=(
        "guardrails_passed",
        "within_scope",
        "guardrails_confidence",
        "guardrails_analysis",
    ),
)
def judge(view: Question, llm: Model) -> Writes:
    """Let the model judge safety and scope in one call. Raises ModelFailure."""
    judgement = _judged(view, llm)
    unscoped = judgement.category == "out_of_scope" and not settings.DOMAIN_SCOPE
    if judgement.category != "none" and not unscoped:
        return _declined(Reason(judgement.category), judgement.confidence, judgement.analysis)
    return _overruled(view) or _passed(judgement.confidence, judgement.analysis)


@judge.without_model
def compare(view: Question) -> Writes:
    """Pass a question unless it is clearly nearer to a declined kind than to a benign one.

    The exemplars are mostly English, as is what the embedding model understands: other
    languages pass unless they are close to the few foreign exemplars there are.
    """
    question, message = _texts(view)
    try:
        reason, nearness = worst(question, message)
    except EmbeddingUnavailable as error:
        # What cannot be judged is declined politely rather than let through.
        return _declined(Reason.SCOPE_UNCLEAR, 0.0, f"not judged: {error}")
    threshold = THRESHOLDS[settings.GUARDRAILS_STRICTNESS]
    confidence = min(1.0, 0.5 + abs(nearness - threshold))
    analysis = f"{reason.value}: {nearness:.2f} of {threshold:.2f}"
    if nearness >= threshold:
        return _declined(reason, confidence, analysis)
    return _passed(confidence, analysis)


@judge.after_failure
def doubt(view: Question, failure: ModelFailure) -> Writes:
    """Let the exemplars judge when no model could be asked at all.

    A failure that the question itself may have provoked is a polite refusal.
    """
    if failure.outage:
        return compare(view)
    return _declined(Reason.SCOPE_UNCLEAR, 0.0, f"not judged: {failure.outcome}")


def _judged(view: Question, llm: Model) -> Judgement:
    text, english = view.text, view.text_eng
    question = view.canonical_question or english or text
    time = view.current_time
    return llm.ask(
        PROMPT,
        Judgement,
        cached_as={"current_time": day(time)},
        domain=settings.DOMAIN_NAME,
        scope=settings.DOMAIN_SCOPE,
        strictness=settings.GUARDRAILS_STRICTNESS,
        current_time=stamp(time),
        question=question,
        translated="" if english == question else english,
        original="" if text in {question, english} else text,
    )


def _overruled(view: Question) -> Writes | None:
    """The refusal of what is clearly unsafe by the exemplars, whatever a model says."""
    question, message = _texts(view)
    try:
        reason, nearness = worst(question, message)
    except EmbeddingUnavailable:
        return None
    excess = nearness - THRESHOLDS[settings.GUARDRAILS_STRICTNESS]
    if reason not in UNSAFE or excess < CLEARLY:
        return None
    analysis = f"passed by the model, but {reason.value} by the exemplars: {nearness:.2f}"
    return _declined(reason, min(1.0, 0.5 + excess), analysis)


def _texts(view: Question) -> tuple[str, str]:
    """The question as it is understood, and what was literally said, in English."""
    message = view.text_eng or view.text
    return view.canonical_question or message, message


def _passed(confidence: float, analysis: str) -> Writes:
    return {
        "guardrails_passed": True,
        "within_scope": True,
        "guardrails_confidence": confidence,
        "guardrails_analysis": analysis,
    }


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
