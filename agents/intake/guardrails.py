"""Guardrails: decides whether a question is safe and in scope, and how sure that is."""

import math
import textwrap
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from agents.attributes import Persona, Reason, Unit
from agents.contract import View, Writes, llm_agent
from agents.llm.history import day, stamp
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.names import Role
from knowledge.embedding import encode, token_states
from knowledge.errors import EmbeddingUnavailable
from knowledge.sentences import split_message
from knowledge.trained_layers import token_layer
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
# Trained by `assistant.lab.guardrails_fit`, the kinds are "safe" and the names of UNSAFE.
LAYER = Path(__file__).with_name("guardrails.npz")
UNSAFE = (Reason.HARMFUL_CONTENT, Reason.SYSTEM_ABUSE, Reason.INAPPROPRIATE)
SAFE = "safe"
# From which odds on, as logarithm of the kind's against those of "safe", a question is suspected
# at "medium". Chosen with XSTest, injections of five sets and 5,000 questions of users in view: of
# XSTest's harmless ones 6 % are suspected, of questions about products and to a shop at most 0.2 %,
# of long technical posts 2 %. `docs/guardrails.md` has what the sets say.
MEDIUM = {
    Reason.HARMFUL_CONTENT: 4.5,
    Reason.SYSTEM_ABUSE: 2.2,
    Reason.INAPPROPRIATE: 3.5,
}
STRICTNESS = {"low": 1.0, "medium": 0.0, "high": -1.0}
# So far beyond that it is clear, whatever search finds. Of 3,553 questions and posts of users of
# software (TechQA, five products, headings of manuals made questions) none lies there; of what
# Tensor Trust's players wrote .58, of deepset's injections .19.
CLEARLY = 2.5
# So far beyond it, at any strictness, it is declined even if a model lets it pass, which may have
# been talked into that: of 13,469 harmless texts (XSTest, NotInject, OKTest, banking77, titles of
# Stack Overflow, questions to Ask Ubuntu, to a shop and about products, e-mails) one lies there.
OVERRULING = 3.5
# So far below it a text is plainly harmless. Of 271 questions about products with words that sound
# dangerous 99 % lie there and of 250 harmless ones of XSTest 79 %; but so do 38 % of XSTest's
# unsafe ones and 65 % of HarmBench's standard ones: it weighs against a model, and search decides.
# `evaluate guardrails` measures it.
PLAINLY_HARMLESS = -2.0
# The sentences of a longer text are judged by themselves as well, at most so many parts of it.
MOST_PARTS = 24
LONGEST_PART = 600  # characters, which the window of the embedding model holds
# A model that is less sure of a refusal than this only suspects.
CERTAIN = 0.9
# What the question itself may have brought about; any other failure says nothing about it.
PROVOKED = frozenset({Outcome.REFUSED, Outcome.FILTERED})
# Below this cosine to the description of the scope a question may be none of its business: one in
# seven of 187 questions about a cloud lies there, and more than half of 200 about anything.
IN_SCOPE = 0.05


class Verdict(StrEnum):
    """How a question is judged; what is suspected passes when the documents answer it."""

    SAFE = "safe"
    SUSPECTED = "suspected"
    UNSAFE = "unsafe"


class Suspicion(NamedTuple):
    """The kind of unsafe question a text is most likely, and how far beyond MEDIUM."""

    reason: Reason
    excess: float


class Question(View):
    """What guardrails reads: the question as it is understood and was said, and its scope."""

    canonical_question: str = ""
    text_eng: str = ""
    text: str = ""
    current_time: str = ""
    assistant: Persona = Field(default_factory=Persona)


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
        "guardrails_verdict",
        "within_scope",
        "guardrails_confidence",
        "guardrails_analysis",
    ),
)
def judge(view: Question, llm: Model) -> Writes:
    """Let the model judge safety and scope in one call. Raises ModelFailure."""
    judgement = _judged(view, llm)
    confidence, analysis = judgement.confidence, judgement.analysis
    if judgement.category == "none":
        return _overruled(view) or _passed(confidence, analysis)
    reason = Reason(judgement.category)
    if reason in UNSAFE:
        sure = confidence >= CERTAIN and not _is_plainly_harmless(view)
        verdict = Verdict.UNSAFE if sure else Verdict.SUSPECTED
        return _declined(verdict, reason, confidence, analysis)
    # Without a stated scope nothing is outside of it.
    if not view.assistant.domain_scope:
        return _overruled(view) or _passed(confidence, analysis)
    return _overruled(view) or _declined(Verdict.SUSPECTED, reason, confidence, analysis)


@judge.without_model
def compare(view: Question) -> Writes:
    """Judge safety by the trained layer, and scope by the nearness to its description."""
    try:
        reason, excess = suspicion(*_texts(view))
        scope = _nearness_to_scope(view)
    except EmbeddingUnavailable as error:
        # What cannot be judged is declined politely rather than let through.
        return _declined(Verdict.UNSAFE, Reason.SCOPE_UNCLEAR, 0.0, f"not judged: {error}")
    excess -= STRICTNESS[view.assistant.strictness]
    analysis = f"{reason.value}: {excess:+.1f} beyond what is suspicious"
    if excess >= 0:
        verdict = Verdict.UNSAFE if excess >= CLEARLY else Verdict.SUSPECTED
        return _declined(verdict, reason, _probability(excess), analysis)
    if scope < IN_SCOPE:
        analysis = f"nearness to the scope: {scope:.2f} of {IN_SCOPE:.2f}"
        return _declined(Verdict.SUSPECTED, Reason.OUT_OF_SCOPE, 0.5, analysis)
    return _passed(_probability(-excess), analysis)


@judge.after_failure
def doubt(view: Question, failure: ModelFailure) -> Writes:
    """Let the trained layer judge: that a model failed is no reason to decline a question.

    One that a model or its filter refused is suspected unless it is plainly harmless.
    """
    writes = compare(view)
    if failure.outcome not in PROVOKED or not writes["guardrails_passed"]:
        return writes
    if _is_plainly_harmless(view):
        return writes
    return _declined(Verdict.SUSPECTED, Reason.SCOPE_UNCLEAR, 0.0, f"not judged: {failure.outcome}")


def suspicion(question: str, message: str) -> Suspicion:
    """Return what is most suspicious of a question and of the words of the user it was made from.

    Raises EmbeddingUnavailable.
    """
    whole = f"{question}\n{message}" if message not in question else question
    texts = [question, *parts(whole)]
    trained = token_layer(LAYER)
    rows = trained.probabilities(token_states(texts), texts)
    shares = [dict(zip(trained.words.kinds, map(float, row), strict=True)) for row in rows]
    return max(
        (
            Suspicion(reason, _odds(likely, reason) - MEDIUM[reason])
            for likely in shares
            for reason in MEDIUM
        ),
        key=lambda each: each.excess,
    )


def parts(text: str) -> list[str]:
    """Return the sentences of a text, long ones cut, and at most MOST_PARTS of them.

    Neighbours are joined where there are more, so that none is left out; a single sentence has
    no parts.
    """
    sentences = [
        line for sentence in split_message(text) for line in textwrap.wrap(sentence, LONGEST_PART)
    ]
    together = math.ceil(len(sentences) / MOST_PARTS)
    joined = [
        " ".join(sentences[place : place + together])
        for place in range(0, len(sentences), max(1, together))
    ]
    return joined if len(joined) > 1 else []


def _odds(likely: dict[str, float], reason: Reason) -> float:
    return math.log(max(likely[reason], 1e-9) / max(likely[SAFE], 1e-9))


def _probability(excess: float) -> float:
    return 1 / (1 + math.exp(-excess))


def _nearness_to_scope(view: Question) -> float:
    """The cosine of the question to the stated scope; 1 without one."""
    assistant = view.assistant
    if not assistant.domain_scope:
        return 1.0
    stated = f"{assistant.domain_name} {assistant.domain_scope}"
    scope, vector = encode([stated, _texts(view)[0]])
    return float(scope @ vector)


def _judged(view: Question, llm: Model) -> Judgement:
    text, english = view.text, view.text_eng
    question = view.canonical_question or english or text
    time = view.current_time
    return llm.ask(
        PROMPT,
        Judgement,
        cached_as={"current_time": day(time)},
        domain=view.assistant.domain_name,
        scope=view.assistant.domain_scope,
        strictness=view.assistant.strictness,
        current_time=stamp(time),
        question=question,
        translated="" if english == question else english,
        original="" if text in {question, english} else text,
    )


def _overruled(view: Question) -> Writes | None:
    """The refusal of what is clearly unsafe by the trained layer, whatever a model says."""
    try:
        reason, excess = suspicion(*_texts(view))
    except EmbeddingUnavailable:
        return None
    if excess < OVERRULING:
        return None
    analysis = f"passed by the model, but {reason.value}: {excess:+.1f} beyond what is suspicious"
    return _declined(Verdict.UNSAFE, reason, _probability(excess), analysis)


def _is_plainly_harmless(view: Question) -> bool:
    """Whether the trained layer finds nothing in the question, at the strictness that is set."""
    try:
        excess = suspicion(*_texts(view)).excess
    except EmbeddingUnavailable:
        return False
    return excess - STRICTNESS[view.assistant.strictness] < PLAINLY_HARMLESS


def _texts(view: Question) -> tuple[str, str]:
    """The question as it is understood, and what was literally said, in English."""
    message = view.text_eng or view.text
    return view.canonical_question or message, message


def _passed(confidence: float, analysis: str) -> Writes:
    return {
        "guardrails_passed": True,
        "guardrails_verdict": Verdict.SAFE,
        "within_scope": True,
        "guardrails_confidence": confidence,
        "guardrails_analysis": analysis,
    }


def _declined(verdict: Verdict, reason: Reason, confidence: float, analysis: str) -> Writes:
    return {
        "guardrails_passed": False,
        "guardrails_verdict": verdict,
        "within_scope": reason in UNSAFE,
        "guardrails_confidence": confidence,
        "guardrails_analysis": analysis,
        "needs_clarification": True,
        "clarification_reason": reason,
        "clarification_message": "",
    }
