"""Response: answers from the passages, every statement cited and held against its passage."""

import re
from collections.abc import Sequence

from pydantic import Field

from agents.analysis.shapes import Plan
from agents.attributes import Evaluation, Persona, Reason, Remark, SearchStats, SourceReference
from agents.contract import View, Writes, llm_agent
from agents.documentation.citations.check import (
    CheckedAnswer,
    Evidence,
    check,
    citation,
)
from agents.documentation.citations.particulars import Particulars
from agents.documentation.citations.statements import whole
from agents.documentation.extraction import Quotation, quotations
from agents.documentation.passages import (
    absent,
    heading,
    searched_for,
    unmentioned,
    with_heading,
    with_sources,
    without_written_list,
)
from agents.documentation.refusal import Refusal, refusal, split_refusals
from agents.documentation.streaming import Stream
from agents.llm.history import history_blocks
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import LENGTH, Reply
from agents.names import Role
from agents.words import ENGLISH, Phrase, base_language, content_words, english_name, words
from knowledge.embedding import similarities
from knowledge.errors import EmbeddingUnavailable
from knowledge.sentences import split_sentences
from prompts.prompt import Block, Prompt

PROMPT = Prompt("response", "language", "tone", "material")
# What was said last tells what an answer goes on from; the question stands alone without it.
RECENT = 4
CUT = "The answer was cut at its limit of tokens; raise RESPONSE_MAX_TOKENS."
# From here on search's certainty makes a quotation an answer, and below a place is none at all: of
# the first places of 870 questions with .5 and more, .81 answered, of those with less than .1 .25,
# and .13 of 220 everyday questions to five collections have more than that.
ANSWERS, HOPELESS = 0.5, 0.1
# From here on one place is enough: of 141 questions to the pages of four products 46 had as much,
# and 35 of those first places held the answer. Of 48 between ANSWERS and this 29 did, and of two
# places together 42. Below ANSWERS three are quoted.
SURE = 0.8
# A longer question tells a story, with names that its answer need not have. Of 81 shorter ones 15
# named what the first place lacks, and 3 of those places were right; of 400 longer ones .63 did,
# and half were right.
LONGEST_ASKED = 20  # words
# So few digits alone say how many rather than which: "after 5 minutes", "30 days".
QUANTITY = re.compile(r"\d{1,2}")
PUNCTUATION = "?!.,;:()\"'"
ENDS = " ?!.\u3002\uff01\uff1f"
# Cosine with the question (all-MiniLM-L6-v2) from which on a statement is about it. Of sentences
# that say in five ways that an answer is missing, for 40 questions, .99 have more than .66 with
# their question, and .99 less than .25 with another.
ABOUT = 0.5
# Where nothing could be compared but words.
UNKNOWN = 0.5
# So many times the words a place must have to be quoted instead of an answer that was cut.
FAR_MORE = 2
# Further places that are named below a quotation.
MOST_FURTHER = 2


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
    search_stats: SearchStats = {}
    evaluation: Evaluation | None = None
    assistant: Persona = Field(default_factory=Persona)
    analysis_plan: Plan | None = None


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
        "answer_form",
        "suggested_actions",
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
        tone=view.assistant.tone,
        material=_material(view),
    )
    writes = _accepted(view, reply)
    if "response" in writes:
        stream.finish(writes["response"])
    else:
        llm.tokens.withdraw()
    return writes


def _material(view: Assignment) -> list[Block]:
    """What the model is given, the question last; what is empty takes no room.

    A model of 1.5 billion parameters that was shown empty elements, and sentences that announce
    the others, repeated its request in 2 of 3 replies, and without them in none of 17.
    """
    return [
        *history_blocks(view.history[-RECENT:]),
        Block("review", view.quality_analysis),
        Block("material", view.augmented_prompt, is_marked=True),
    ]


@answer.without_model
def quote(view: Assignment) -> Writes:
    """Quote the place that answers, or the closest there is; ask when nothing comes near."""
    certainty = _certainty(view)
    return _place(view, places=1 if certainty >= SURE else 2 if certainty >= ANSWERS else 3)


def _place(view: Assignment, missed: Refusal | None = None, *, places: int = 1) -> Writes:
    """The `places` that search put first, with what a model that was asked `missed` in them."""
    references = [r for r in view.source_references if not _doubted(r, view.quality_analysis)]
    certainty = _certainty(view)
    is_foreign = bool(view.search_stats.get("is_foreign"))
    quoted = quotations(
        view.canonical_question,
        references,
        view.response_notes,
        places=places,
        is_foreign=is_foreign,
    )
    if not quoted or certainty < HOPELESS:
        return _ask_back(view)
    missing = [
        _missing_names(view.canonical_question, each.reference, references) for each in quoted
    ]
    certainty = min(certainty, HOPELESS) if missing[0] else certainty
    names = [name for name in missing[0] if all(name in others for others in missing)]
    return _quoted(view, quoted, names, certainty, missed)


def _certainty(view: Assignment) -> float:
    """How likely search finds that the first passage answers, 0 to 1."""
    certainty = view.search_stats.get("certainty")
    return UNKNOWN if certainty is None else certainty


def _quoted(
    view: Assignment,
    quoted: Sequence[Quotation],
    names: Sequence[str],
    certainty: float,
    missed: Refusal | None,
) -> Writes:
    """The quotations with what they are, and the titles of further places."""
    language = view.language
    # Where search and the model do not agree, neither is believed alone.
    answers = certainty >= ANSWERS and not missed
    certainty = min(certainty, ANSWERS) if missed else certainty
    as_list = "list" in view.response_notes
    parts = [each.markdown(as_list=as_list, is_headed=len(quoted) > 1) for each in quoted]
    if missed and missed.missing:
        parts.insert(0, _lead(missed, language))
    elif not answers:
        parts.insert(0, Phrase.CLOSEST.in_language(language))
        missing = names or _missing_words(view)
        if missing:
            parts.append(Phrase.NOT_COVERED.in_language(language, missing=", ".join(missing)))
    # Titles and quotes stay as they are; that they do is said once.
    elif base_language(language) != ENGLISH:
        parts.insert(0, Phrase.QUOTED.in_language(language))
    if note := searched_for(view.search_stats, language):
        parts.insert(0, note)
    if view.analysis_plan and view.analysis_plan.is_undone:
        parts.insert(0, Phrase.NOT_ANALYSED.in_language(language))
    cited = [each.reference for each in quoted]
    evidence = Evidence(cited)
    return with_sources("\n\n".join(parts), cited, language) | {
        "citations_used": [
            citation(each.reference, text, status)
            for each in quoted
            for text in each.quotes
            for status in evidence.statuses(text, [each.reference.marker]).values()
        ],
        "answer_form": "quoted" if answers else "closest",
        "suggested_actions": _further(cited, view.source_references),
        "generation_confidence": certainty,
        # What was found wrong with an answer before is not true of this one.
        "generation_error": "",
        "validation_result": {},
    }


def _lead(missed: Refusal, language: str) -> str:
    """What is said above a place in which the model did not find the answer.

    One sentence that ends with a colon, as what leads to a quotation and states nothing itself.
    """
    asks = missed.reason is Reason.MISSING_DETAILS
    phrase = Phrase.CLOSEST_ASKING if asks else Phrase.CLOSEST_WITHOUT
    first, *_ = split_sentences(missed.missing)
    return phrase.in_language(language, missing=first.strip(ENDS))


def _doubted(reference: SourceReference, analysis: str) -> bool:
    """Whether quality doubted something that a passage says: that is not said again."""
    return any(line and line in reference.text for line in analysis.splitlines())


def _missing_names(
    question: str, place: SourceReference, references: Sequence[SourceReference]
) -> list[str]:
    """The words with a name, number or code that neither the place nor its headings has.

    What most of the passages speak of goes without saying: the product itself.
    """
    if len(question.split()) > LONGEST_ASKED:
        return []
    texts = ["\n\n".join([with_heading(each), each.source, *each.crumbs]) for each in references]
    missing = [Particulars([text], texts).lacks(question) for text in texts]
    names = [
        name
        for name in missing[references.index(place)]
        if not QUANTITY.fullmatch(name)
        and 2 * sum(name in others for others in missing) >= len(references)
    ]
    words = (word.strip(PUNCTUATION) for word in question.split())
    return [word for word in words if any(name in word for name in names)]


def _missing_words(view: Assignment) -> Sequence[str]:
    """The words of the question that no passage has; those of another language say nothing."""
    if view.search_stats.get("is_foreign"):
        return []
    return unmentioned(view.canonical_question, view.source_references)


def _further(quoted: Sequence[SourceReference], references: Sequence[SourceReference]) -> list[str]:
    """The headings of the next best places."""
    headings = dict.fromkeys(heading(each) for each in references)
    shown = {heading(each) for each in quoted}
    return [each for each in headings if each not in shown][:MOST_FURTHER]


def _accepted(view: Assignment, reply: Reply) -> Writes:
    """What becomes of a reply: an answer, a quotation, or a question to the user.

    Raises ModelFailure when nothing of it can be told.
    """
    language = view.language
    first = refusal(reply.text.strip().partition("\n")[0])
    if first:
        return _refused(first, language) if _agree(view) else _place(view, first)
    cut = CUT if reply.finish_reason == LENGTH else ""
    text = whole(reply.text) if reply.is_cut else reply.text
    body, later = split_refusals(without_written_list(text, view.source_references))
    checked = check(body, view.source_references, view.canonical_question, language)
    if not checked.citations:
        return _unsupported(view, checked, later)
    answered = _answered(checked, later, language) | {"generation_error": cut}
    if reply.is_cut:
        return _fuller(answered, _place(view))
    return _whole(answered, _place(view)) if checked.is_headless else answered


def _whole(headless: Writes, place: Writes) -> Writes:
    """The place where search is sure of it, else what is left of an answer without a beginning."""
    return place if place.get("answer_form") == "quoted" else headless


def _fuller(cut: Writes, place: Writes) -> Writes:
    """What is left of an answer that was cut, or the place where that says far more."""
    is_more = _words_cited(place) > FAR_MORE * _words_cited(cut)
    return place if is_more and place["answer_form"] == "quoted" else cut


def _words_cited(writes: Writes) -> int:
    quotes = {each.quote for each in writes.get("citations_used", [])}
    return sum(len(words(each)) for each in quotes)


def _unsupported(view: Assignment, checked: CheckedAnswer, later: Refusal | None) -> Writes:
    """What becomes of a reply that says nothing of what the passages say.

    Where it is about the question, search and model do not agree that there is an answer: the place
    is the closest. Raises ModelFailure where it is not: it tells nothing about the passages.
    """
    if later or _is_about(view, checked.uncited):
        return _place(view, later or Refusal(Reason.INSUFFICIENT_CONTEXT, ""))
    what = "says what no passage says" if checked.removed else "cites no passage"
    raise ModelFailure(Outcome.MALFORMED, f"the answer {what} that it was given")


def _is_about(view: Assignment, statements: Sequence[str]) -> bool:
    """Whether one of the statements that no passage makes is about the question.

    "The passages do not say whether …" is, and so is a claim that a model made up; what was asked
    to be done, an apology and gibberish are not.
    """
    is_foreign = base_language(view.language) != ENGLISH
    try:
        cosines = similarities(view.canonical_question, statements, is_foreign=is_foreign)
    except EmbeddingUnavailable:
        return False
    return bool((cosines >= ABOUT).any())


def _agree(view: Assignment) -> bool:
    """Whether search and evaluator find, too, that the passages may not answer.

    A model of 1.5 billion parameters found so of 5 questions of 5 whose first passage answers.
    """
    is_judged_sufficient = view.evaluation is not None and view.evaluation.sufficient
    return _certainty(view) < ANSWERS and not is_judged_sufficient


def _answered(checked: CheckedAnswer, later: Refusal | None, language: str) -> Writes:
    parts = [checked.text]
    if later and later.missing:
        parts.append(Phrase.NOT_COVERED.in_language(language, missing=later.missing))
    cited = {citation.marker: citation for citation in checked.citations}
    return with_sources("\n\n".join(parts), cited.values(), language) | {
        "citations_used": checked.citations,
        "generation_confidence": checked.confidence,
        "validation_result": checked.findings(),
        "answer_form": "written",
        "suggested_actions": [],
    }


def _refused(refused: Refusal, language: str) -> Writes:
    """The model says what is missing for an answer."""
    phrase = Phrase.NEEDED if refused.reason is Reason.MISSING_DETAILS else Phrase.NOT_COVERED
    message = phrase.in_language(language, missing=refused.missing) if refused.missing else ""
    return _clarification(refused.reason, message)


def _ask_back(view: Assignment) -> Writes:
    """Nothing to say with a source: name what the passages do not mention."""
    question = view.canonical_question
    missing = _missing_words(view)
    message = ""
    if missing:
        language = view.language
        message = Phrase.NOT_COVERED.in_language(language, missing=", ".join(missing))
    lost = absent(question, view.source_references)
    partly = missing and len(lost) < len(set(content_words(question)))
    reason = Reason.MISSING_DETAILS if partly else Reason.INSUFFICIENT_CONTEXT
    return _clarification(reason, message)


def _clarification(reason: Reason, message: str) -> Writes:
    return {
        "needs_clarification": True,
        "clarification_reason": reason,
        "clarification_message": message,
        "generation_confidence": 0.0,
    }
