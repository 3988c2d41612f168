"""Clarification: says what is unclear or out of reach and what can be done instead."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten
from typing import Any

from django.conf import settings
from pydantic import BaseModel, Field

from agents.attributes import (
    DECLINING_REASONS,
    ClarifyingQuestion,
    OpenQuestion,
    Passage,
    Persona,
    Reason,
    Remark,
    SearchStats,
)
from agents.contract import View, Writes, llm_agent
from agents.documentation.citations.links import Addresses, harmless
from agents.documentation.citations.statements import normalised, without_markers
from agents.documentation.passages import searched_for, unmentioned
from agents.llm.history import history_blocks
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.schema import NonEmpty
from agents.names import Role
from agents.words import (
    ENGLISH,
    Phrase,
    base_language,
    capabilities,
    english_name,
    handed_over,
    reason_text,
    words,
)
from knowledge.language import is_no_language
from prompts.prompt import Block, Prompt

PROMPT = Prompt(
    "clarification",
    "language",
    "reason",
    "scope",
    "tone",
    "details",
    "questions",
    "history",
    "options",
)
# Reasons to which one of the options may be the answer.
OPEN = frozenset(
    {
        Reason.AMBIGUOUS_QUERY,
        Reason.MULTIPLE_TOPICS,
        Reason.MISSING_CONTEXT,
        Reason.VAGUE_REQUEST,
    }
)
# Reasons of which the asking agent knows particulars worth showing.
PARTICULAR = frozenset(
    {Reason.INSUFFICIENT_CONTEXT, Reason.MISSING_DETAILS, Reason.QUALITY_INSUFFICIENT}
)
MOST_OPTIONS = 4
LONGEST_OPTION = 70
# The model chooses among so many, and sees what was said last.
MOST_CANDIDATES = 8
RECENT = 4
# Where search measured no confidence: below this cosine a passage is about something else, by
# all-MiniLM-L6-v2.
CLOSE = 0.35
LONGEST_MESSAGE = 1200
# Of what another agent asks or misses.
LONGEST_PARTICULAR = 300
# Addresses, pictures, tags, markers, and lists: what there is to choose from is added by us.
FORBIDDEN = re.compile(
    r"//|www\.|\][(:\[]|<[a-z/!]|\[C\d+\]|^\s*(?:[-*+\u2022]|\d{1,2}[.)])\s",
    re.IGNORECASE | re.MULTILINE,
)
# Code, tags, links and pictures begin or end with one of these.
MARKUP = re.compile(r"[`<>\[\]*]|^\s*#+\s|(?<!\w)_+|_+(?!\w)")


class Request(View):
    """What clarification reads: who asks what of the user, and what there is to offer."""

    clarification_reason: Reason = Reason.INSUFFICIENT_CONTEXT
    clarification_message: str = ""
    language: str = ENGLISH
    clarifying_questions: list[str] = []
    search_results: list[Passage] = []
    search_stats: SearchStats = {}
    history: list[Remark] = []
    clarification_rounds: int = 0
    canonical_question: str = ""
    offers: list[str] = []
    open_clarification: OpenQuestion | None = None
    translation_confidence: float | None = None
    current_time: str = ""
    spoken_language: str = ""
    assistant: Persona = Field(default_factory=Persona)


class Wording(BaseModel):
    """What the model says to the user."""

    message: NonEmpty
    lead: str
    options: list[int]


@llm_agent(
    Role.CLARIFICATION,
    reads=Request,
    writes=("response", "clarification_type", "questions_asked", "suggested_actions"),
)
def ask(view: Request, llm: Model) -> Writes:
    """Let the model word the question and choose among what exists; close in fixed words.

    Of what is declined the model sees the reason alone: so it cannot repeat it. Raises
    ModelFailure for a reply that offers what was not given to it.
    """
    if _is_last_round(view) or _is_empty(view):
        return say(view)
    reason = view.clarification_reason
    language = view.language
    declining = reason in DECLINING_REASONS
    candidates = _candidates(view, MOST_CANDIDATES)
    wording = llm.ask(
        PROMPT,
        Wording,
        documents=tuple(dict.fromkeys(p.document_id for p in view.search_results)),
        language=english_name(language),
        reason=f"{reason.value}: {reason_text(reason, ENGLISH)}",
        scope=capabilities(ENGLISH, view.assistant),
        tone=view.assistant.tone,
        details="" if declining else _message(view),
        questions="" if declining else "\n".join(_questions(view)),
        history=[] if declining else history_blocks(view.history[-RECENT:]),
        options=[
            Block("option", option, {"number": str(number)})
            for number, option in enumerate(candidates, start=1)
        ],
    )
    offered = chosen(wording, candidates) or candidates[:MOST_OPTIONS]
    paragraphs = [wording.message, *_still_taken_in(view)]
    if offered:
        lead = wording.lead.strip() or _lead(view, reason).in_language(language)
        paragraphs.append("\n".join([lead, *(f"- {option}" for option in offered)]))
    asked = []
    if not declining:
        context = reason_text(reason, language)
        asked = [_question(wording.message, context, offered)]
    return _writes(paragraphs, reason, offered, language, asked)


@ask.without_model
def say(view: Request) -> Writes:
    """Say why, then offer what exists; after the last round hand over or close, and ask nothing."""
    language = view.language
    reason = view.clarification_reason
    offered = _candidates(view)
    if _is_empty(view):
        nothing = Phrase.NO_DOCUMENTS.in_language(language)
        return _writes([nothing, *_still_taken_in(view)], reason, [], language)
    if _is_last_round(view) and settings.HANDOVER:
        return _handed_over(view)
    asked: list[dict[str, Any]] = []
    if _is_last_round(view):
        told = capabilities(language, view.assistant)
        paragraphs = [Phrase.CLOSING.in_language(language), told]
        if offered:
            paragraphs.append(_listed(Phrase.COVERED, offered, language))
    else:
        paragraphs = _paragraphs(view, reason, offered, language)
        asked = [] if reason in DECLINING_REASONS else _asked(view, offered)
    return _writes(paragraphs, reason, offered, language, asked)


def _handed_over(view: Request) -> Writes:
    """Say that a person goes on; there is nothing to choose from meanwhile."""
    language, reason = view.language, view.clarification_reason
    unresolved = Phrase.UNRESOLVED.in_language(language)
    told = f"{unresolved} {handed_over(language, view.current_time, view.assistant)}"
    return {
        "response": told,
        "clarification_type": _type(reason, ()),
        "questions_asked": [],
        "suggested_actions": [],
    }


def _is_empty(view: Request) -> bool:
    """Whether there is nothing to find; what is declined was not looked up."""
    return view.search_stats.get("chunks") == 0


def chosen(wording: Wording, candidates: Sequence[str]) -> list[str]:
    """Return the options the model chose. Raises ModelFailure when it says more than it may."""
    text = f"{wording.message}\n{wording.lead}"
    if FORBIDDEN.search(text) or len(text) > LONGEST_MESSAGE:
        raise ModelFailure(
            Outcome.MALFORMED, "the clarification holds an address, a list, or far too much"
        )
    if is_no_language(wording.message):
        raise ModelFailure(Outcome.MALFORMED, "the clarification is in no language")
    if unknown := [number for number in wording.options if not 1 <= number <= len(candidates)]:
        raise ModelFailure(Outcome.MALFORMED, f"there is no option {unknown[0]} to offer")
    return [candidates[number - 1] for number in dict.fromkeys(wording.options)][:MOST_OPTIONS]


def _is_last_round(view: Request) -> bool:
    """Whether it was asked often enough; what is declined asks nothing."""
    asks = view.clarification_reason not in DECLINING_REASONS
    return asks and bool(view.clarification_rounds >= settings.MAX_CLARIFICATION_ROUNDS)


def _candidates(view: Request, most: int = MOST_OPTIONS) -> list[str]:
    """What can be offered: places that were found, or documents instead of what is declined.

    What was offered before and did not help is not offered again.
    """
    if view.clarification_reason in DECLINING_REASONS:
        return _distinct(map(plain, view.offers), most)
    near = view.clarification_reason not in PARTICULAR or _is_near(view)
    if view.canonical_question and not words(view.canonical_question):
        near = False  # what is near to signs alone is so by chance
    places = options(view.search_results, most) if near else []
    open_question = view.open_clarification
    return [] if open_question and places == open_question.options else places


def options(passages: Sequence[Passage], most: int = MOST_OPTIONS) -> list[str]:
    """The places to choose from, best first: "title — section", below their crumbs where alike.

    Different documents come before several sections of one.
    """
    seen: Counter[str] = Counter()
    ranked = []
    for rank, passage in enumerate(passages):
        ranked.append((seen[passage.document_id], rank, passage))
        seen[passage.document_id] += 1
    best = [passage for _, _, passage in sorted(ranked, key=lambda each: each[:2])]
    documents: dict[str, set[str]] = {}
    for passage in best:
        documents.setdefault(_named(passage).casefold(), set()).add(passage.document_id)
    alike = {name for name, those in documents.items() if len(those) > 1}
    return _distinct(
        (
            _below_crumbs(passage) if _named(passage).casefold() in alike else _named(passage)
            for passage in best
        ),
        most,
    )


def _named(passage: Passage) -> str:
    """Title and section in plain text; what is too long to choose by says the section alone."""
    title, section = plain(passage.title), plain(passage.section.rsplit(" > ", maxsplit=1)[-1])
    parts = [title, *([section] if section.casefold() != title.casefold() else [])]
    named = " — ".join(filter(None, parts))
    return named if len(named) <= LONGEST_OPTION else _shortened(section or title)


def _shortened(name: str) -> str:
    return shorten(name, LONGEST_OPTION, placeholder="…")


def _below_crumbs(passage: Passage) -> str:
    crumbs = [plain(crumb) for crumb in passage.crumbs if plain(crumb) != plain(passage.title)]
    return " — ".join([*crumbs[-1:], _named(passage)])


def _distinct(names: Iterable[str], most: int) -> list[str]:
    spellings: dict[str, str] = {}
    for name in names:
        if name:
            spellings.setdefault(name.casefold(), name)
    return list(spellings.values())[:most]


def _paragraphs(view: Request, reason: Reason, offered: Sequence[str], language: str) -> list[str]:
    """The paragraphs of a question back: what is unclear, then what to choose from."""
    paragraphs = [_opening(view, reason, language), *_still_taken_in(view)]
    if note := searched_for(view.search_stats, language):
        paragraphs.insert(0, note)
    if reason in DECLINING_REASONS:
        paragraphs.append(capabilities(language, view.assistant))
    if offered:
        paragraphs.append(_listed(_lead(view, reason), offered, language))
    elif reason not in DECLINING_REASONS:
        paragraphs.append(Phrase.REPHRASE.in_language(language))
    # The router's questions are English.
    if base_language(language) == ENGLISH:
        paragraphs.extend(_questions(view))
    return paragraphs


def _still_taken_in(view: Request) -> Iterator[str]:
    """Say how far the documents are, where more are to come that may say it."""
    if view.clarification_reason not in DECLINING_REASONS and "taken_in" in view.search_stats:
        finished, items = view.search_stats["taken_in"]
        yield Phrase.STILL_TAKEN_IN.in_language(view.language, finished=finished, items=items)


def _opening(view: Request, reason: Reason, language: str) -> str:
    """Say what is unclear or missing, as far as anybody knows."""
    passages = view.search_results
    opening = [reason_text(reason, language)]
    if reason in PARTICULAR:
        spoken = base_language(view.spoken_language or language)
        languages = sorted({p.language for p in passages} - {spoken})
        is_foreign = bool(languages) and view.translation_confidence == 0
        opening.extend(filter(None, [_message(view) or ("" if is_foreign else _missing(view))]))
        if is_foreign and not view.search_stats.get("is_foreign"):
            opening.append(
                Phrase.NOT_TRANSLATED.in_language(language, languages=", ".join(languages))
            )
    return " ".join(opening)


def _asked(view: Request, offered: Sequence[str]) -> list[dict[str, Any]]:
    """The questions that the paragraphs put, apart from each other: what to choose from first."""
    reason, language = view.clarification_reason, view.language
    is_choice = offered and _lead(view, reason) is Phrase.MEANT
    first = (Phrase.MEANT if is_choice else Phrase.REPHRASE).in_language(language)
    context = _opening(view, reason, language)
    own = _questions(view) if base_language(language) == ENGLISH else []
    return [_question(first, context, offered), *(_question(each, context) for each in own)]


def _question(text: str, context: str, suggestions: Sequence[str] = ()) -> dict[str, Any]:
    return ClarifyingQuestion(
        question=text, context=context, suggestions=list(suggestions)
    ).model_dump()


def _missing(view: Request) -> str:
    """Names what the question is about and nothing that was found speaks of."""
    passages = view.search_results
    names = unmentioned(view.canonical_question, passages) if passages else []
    if not names:
        return ""
    return Phrase.NOT_COVERED.in_language(view.language, missing=", ".join(names))


def _lead(view: Request, reason: Reason) -> Phrase:
    """What the options are, said no stronger than they were found."""
    if reason in OPEN and reason is not Reason.VAGUE_REQUEST:
        return Phrase.MEANT
    near = _is_near(view)
    return Phrase.NEARBY if near and reason in PARTICULAR else Phrase.COVERED


def _is_near(view: Request) -> bool:
    """Whether what was found is about the question, by search's own measure if there is one."""
    stats = view.search_stats
    confidence, threshold = stats.get("confidence"), stats.get("threshold")
    passages = view.search_results
    if confidence is None or threshold is None:
        return any(p.cosine is None or p.cosine >= CLOSE for p in passages)
    return bool(passages) and bool(confidence >= threshold)


def _listed(lead: Phrase, offered: Sequence[str], language: str) -> str:
    return "\n".join([lead.in_language(language), *(f"- {option}" for option in offered)])


def _message(view: Request) -> str:
    return plain(view.clarification_message)


def _questions(view: Request) -> list[str]:
    return list(filter(None, map(plain, view.clarifying_questions)))


def plain(text: str) -> str:
    """Return what another agent's model wrote as words alone: no address, markup or marker.

    What it has read may have told it to send the user somewhere. Code is words, too: where it
    were left as it is, a piece of it could become a link beside other text.
    """
    nowhere = Addresses([])
    words = harmless(without_markers(normalised(text.replace("`", ""))), nowhere)
    # What was split by brackets is one address without them.
    return " ".join(harmless(MARKUP.sub("", words), nowhere).split())[:LONGEST_PARTICULAR]


def _writes(
    paragraphs: Sequence[str],
    reason: Reason,
    offered: Sequence[str],
    language: str,
    asked: Sequence[dict[str, Any]] = (),
) -> Writes:
    return {
        "response": "\n\n".join(paragraphs),
        "clarification_type": _type(reason, offered),
        "questions_asked": list(asked),
        "suggested_actions": list(offered) or [Phrase.SUGGEST_HELP.in_language(language)],
    }


def _type(reason: Reason, offered: Sequence[str]) -> str:
    if reason in DECLINING_REASONS:
        return "scope"
    if reason in (Reason.AMBIGUOUS_QUERY, Reason.MULTIPLE_TOPICS):
        return "ambiguity"
    return "choice" if reason in OPEN and len(offered) > 1 else "context"
