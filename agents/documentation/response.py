"""Response: answers from the passages, every statement cited and held against its passage."""

from agents.attributes import Reason, Remark, SourceReference
from agents.contract import View, Writes, llm_agent
from agents.documentation.citations.check import CheckedAnswer, check
from agents.documentation.citations.statements import whole
from agents.documentation.extraction import extracted
from agents.documentation.passages import unmentioned, with_sources, without_own_list
from agents.documentation.refusal import Refusal, refusal, split_refusals
from agents.documentation.streaming import Stream
from agents.intake.history import history_blocks
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply
from agents.names import Role
from agents.words import ENGLISH, Phrase, content_words, english_name
from prompts.prompt import Prompt

PROMPT = Prompt("response", "language", "augmented_prompt", "history", "review")
# What was said last tells what an answer goes on from; the question stands alone without it.
RECENT = 4
CUT = "The answer was cut at its limit of tokens; raise RESPONSE_MAX_TOKENS."


class Assignment(View):
    """What the response reads: what to answer from, for whom, and what was wrong before."""

    augmented_prompt: str = ""
    source_references: list[SourceReference] = []
    language: str = ENGLISH
    canonical_question: str = ""
    quality_analysis: str = ""
    quality_returns: int = 0
    history: list[Remark] = []
    response_notes: list[str] = []


@llm_agent(
    Role.RESPONSE,
    reads=Assignment,
    writes=(
        "response",
        "sources_used",
        "citations_used",
        "generation_confidence",
        "generation_error",
        "validation_result",
    ),
)
def answer(view: Assignment, llm: Model) -> Writes:
    """Let the model write the answer, shown while it is written; only what holds stays.

    Raises ModelFailure when what came is no cited answer, but one can be quoted.
    """
    references = view.source_references
    if not references:
        return quote(view)
    if view.quality_returns or llm.tokens.attempt > 1:
        llm.tokens.replace()
    stream = Stream.quoting(references, llm.tokens)
    reply = llm.write(
        PROMPT,
        on_text=stream.take,
        on_restart=stream.restart,
        documents=tuple(dict.fromkeys(r.document_id for r in references)),
        language=english_name(view.language),
        augmented_prompt=view.augmented_prompt,
        history=history_blocks(view.history[-RECENT:]),
        review=view.quality_analysis,
    )
    writes = _accepted(view, reply)
    if "response" in writes:
        stream.finish(writes["response"])
    else:
        llm.tokens.withdraw()
    return writes


@answer.without_model
def quote(view: Assignment) -> Writes:
    """Quote what answers the question; ask when nothing does."""
    quoted = extracted(
        view.canonical_question,
        view.source_references,
        language=view.language,
        notes=view.response_notes,
        doubted=view.quality_analysis,
    )
    return quoted or _ask_back(view)


def _accepted(view: Assignment, reply: Reply) -> Writes:
    """What becomes of a reply: an answer, or a question to the user."""
    language = view.language
    first = refusal(reply.text.strip().partition("\n")[0])
    if first:
        return _refused(first, language)
    cut = reply.finish_reason == "length"
    body, later = split_refusals(without_own_list(whole(reply.text) if cut else reply.text))
    checked = check(body, view.source_references, view.canonical_question)
    if not checked.citations:
        if not checked.removed:
            raise ModelFailure(Outcome.MALFORMED, "the answer cites no passage that it was given")
        return _ask_back(view)
    return _answered(checked, later, language) | {"generation_error": CUT if cut else ""}


def _answered(checked: CheckedAnswer, later: Refusal | None, language: str) -> Writes:
    parts = [checked.text]
    if later and later.missing:
        parts.append(Phrase.NOT_COVERED.in_language(language, missing=later.missing))
    cited = {citation.marker: citation for citation in checked.citations}
    return with_sources("\n\n".join(parts), cited.values(), language) | {
        "citations_used": checked.citations,
        "generation_confidence": checked.confidence,
        "validation_result": checked.findings(),
    }


def _refused(refused: Refusal, language: str) -> Writes:
    """The model says what is missing for an answer."""
    phrase = Phrase.NEEDED if refused.reason is Reason.MISSING_DETAILS else Phrase.NOT_COVERED
    message = phrase.in_language(language, missing=refused.missing) if refused.missing else ""
    return _clarification(refused.reason, message)


def _ask_back(view: Assignment) -> Writes:
    """Nothing to say with a source: name what the passages do not mention."""
    question = view.canonical_question
    missing = unmentioned(question, view.source_references)
    message = ""
    if missing:
        language = view.language
        message = Phrase.NOT_COVERED.in_language(language, missing=", ".join(missing))
    partly = missing and len(missing) < len(set(content_words(question)))
    reason = Reason.MISSING_DETAILS if partly else Reason.INSUFFICIENT_CONTEXT
    return _clarification(reason, message)


def _clarification(reason: Reason, message: str) -> Writes:
    return {
        "needs_clarification": True,
        "clarification_reason": reason,
        "clarification_message": message,
        "generation_confidence": 0.0,
    }
