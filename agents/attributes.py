"""Attributes: every word the payload of an envelope may hold, its shape and who provides it."""

import re
from enum import StrEnum
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_type_hints

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from agents.analysis.shapes import Evidence, Output, Plan, QueryType, Request, Shortcoming
from agents.names import Role, Route, Status
from agents.reducer import Reducer

Unit = Annotated[float, Field(ge=0, le=1)]
LANGUAGE = re.compile(r"^[a-z]{2,3}(-[a-z]{2,4})?$")
Language = Annotated[str, Field(pattern=LANGUAGE.pattern)]


class Reason(StrEnum):
    """Why an agent asks the user for clarification."""

    AMBIGUOUS_QUERY = "ambiguous_query"
    INSUFFICIENT_CONTEXT = "insufficient_context"
    SCOPE_UNCLEAR = "scope_unclear"
    MULTIPLE_TOPICS = "multiple_topics"
    MISSING_DETAILS = "missing_details"
    MISSING_CONTEXT = "missing_context"
    VAGUE_REQUEST = "vague_request"
    OUT_OF_SCOPE = "out_of_scope"
    QUALITY_INSUFFICIENT = "quality_insufficient"
    HARMFUL_CONTENT = "harmful_content"
    SYSTEM_ABUSE = "system_abuse"
    INAPPROPRIATE = "inappropriate"
    OFF_TOPIC = "off_topic"


# Reasons that decline the question itself; a reply to them does not complete it.
DECLINING_REASONS = frozenset(
    {
        Reason.SCOPE_UNCLEAR,
        Reason.OUT_OF_SCOPE,
        Reason.HARMFUL_CONTENT,
        Reason.SYSTEM_ABUSE,
        Reason.INAPPROPRIATE,
        Reason.OFF_TOPIC,
    }
)


# What is said beside questions. `nature`: who or what is answering; `person`: to be put through to
# one; `giving_up` a question that was asked back about; `wish`: how to answer from now on.
SmallTalk = Literal[
    "greeting",
    "thanks",
    "goodbye",
    "giving_up",
    "ability",
    "nature",
    "person",
    "discontent",
    "wish",
]


class Value(BaseModel):
    """A structured attribute value: stored as JSON, refused when a key is unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Remark(Value):
    """One message of the conversation as the turn saw it."""

    role: Literal["user", "assistant", "staff"]
    text: str
    time: str  # ISO 8601, UTC


class Persona(Value):
    """The assistant that answers, as it was when the turn began.

    What an assistant leaves open, and everything where none was chosen, the settings say.
    """

    name: str = ""
    title: str = ""
    domain_name: str = Field(default_factory=lambda: str(settings.DOMAIN_NAME))
    domain_scope: str = Field(default_factory=lambda: str(settings.DOMAIN_SCOPE))
    contact: str = Field(default_factory=lambda: str(settings.SUPPORT_CONTACT))
    strictness: str = Field(default_factory=lambda: str(settings.GUARDRAILS_STRICTNESS))
    routes: list[Route] = Field(default_factory=lambda: [Route(each) for each in settings.ROUTES])
    # asker → model@provider, or nothing for one that works by rules; others ask as settings say.
    models: dict[str, str] = {}
    tone: str = ""
    languages: list[Language] = []  # that it answers in; empty: in the user's
    greeting: str = ""
    opening_hours: str = Field(default_factory=lambda: str(settings.OPENING_HOURS.text))

    def answers_in(self, language: str) -> bool:
        """Whether it answers in a language, of whatever region."""
        own = {each.partition("-")[0] for each in self.languages}
        return not own or language.partition("-")[0] in own

    def language_for(self, spoken: str) -> str:
        """Return the language to answer in to who speaks this one."""
        return spoken if self.answers_in(spoken) else self.languages[0]


class OpenQuestion(Value):
    """The question the last turn asked back about, waiting for the user's reply."""

    question: str  # the canonical question that could not be answered as it was
    reason: Reason
    options: list[str] = []


class MemoryUpdates(Value):
    """What the conversation should remember after this turn."""

    facts: list[str] = []
    withdrawn: list[str] = []  # facts known before that hold no longer
    topic: str = ""
    # None: as before; empty: none any more, the answer follows the user's language.
    language_preference: Language | Literal[""] | None = None


# The flag of a conversation in which money is asked back.
REFUND_IN_PROGRESS = "refund_in_progress"


class RefundForm(Value):
    """What a customer wants back, as far as it is known by rules; empty: not named yet."""

    invoice: str = ""
    amount: str = ""  # a decimal number, in the currency of the plan
    reason: Literal["", "overcharge", "service_outage", "within_cooling_off", "other"] = ""
    description: str = ""  # what happened, in the customer's own words
    is_asked: bool = False  # False: a model asked something, and no rules ask for what is missing
    # All of it was shown in the last turn, and a yes opens the case.
    is_shown: bool = False
    # Numbers of the invoices that can be refunded, by which an answer is told from a question.
    invoices: list[str] = []
    turns_beside: int = 0  # that have ended since, without billing having asked for it


class StateUpdates(Value):
    """What a role that acts for the user leaves behind in the conversation."""

    billing_case_id: str = ""  # of the case opened last; empty: as before
    context_flags: dict[str, bool] = {}
    refund_form: RefundForm | None = None  # None: none is open any more


class Wordings(Value):
    """How well search finds with a message alone, and with the question before it.

    Scores are confidence above what can carry an answer, below 0 where nothing can.
    """

    alone: float
    together: float
    kept: Literal["alone", "together"]


class SummaryUpdate(Value):
    """The conversation's summary with the messages that left the history folded in."""

    summary: str
    # Time of the last message that need not leave again, ISO 8601, UTC; None: all of them do.
    until: str | None


class Passage(Value):
    """A chunk found by search. `cosine` is None when only a keyword matched."""

    chunk_id: int
    document_id: str
    version: int
    edition: str = ""  # the document's own version, as it names it
    title: str
    section: str  # "Heading > Subheading", empty at the top of a document
    crumbs: list[str]
    source: str
    language: str
    text: str
    score: float  # fused rank score, higher is better, comparable within one search only
    cosine: float | None


class SearchStats(TypedDict, total=False):
    """What is known of a search beside its passages, among other things for the trace."""

    total: int  # passages found
    used: int  # of those, how many an answer can be made from within MAX_CONTEXT_LENGTH
    context_length: int  # characters of these, with their headings
    average_score: float | None  # mean of their cosines; None where only words were compared
    chunks: int  # about how many there were to search
    # Of a search that found little: finished and all items of the ingests that were under way.
    taken_in: tuple[int, int]
    confidence: float | None  # how far the best stand out, and what they would have to reach
    threshold: float
    certainty: float | None  # how likely the first passage answers, 0 to 1
    expansion: str
    cached: bool
    corrected: dict[str, str]  # words of the question that no document has → searched for instead
    is_foreign: bool  # searched across languages
    absent: list[str]  # words of the question that no passage has; none across languages
    # What the question wishes for and the passages may lack, however near they are.
    unproven: list[str]

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]


class Evaluation(Value):
    """Whether the passages answer the question."""

    sufficient: bool
    missing: str = ""
    confidence: Unit


class TriedSearch(Value):
    """A search of this turn, and what its passages left open."""

    query: str
    missing: str = ""


class Source(Value):
    """Where something is written, for the list under an answer."""

    title: str
    section: str
    source: str
    version: int
    edition: str = ""  # the document's own version, as it names it
    crumbs: list[str] = []  # where the document stands, from the outside inwards
    score: Unit | None  # cosine with the question; None where only words were compared


class MarkedSource(Source):
    """The passage behind one marker of an answer."""

    marker: str  # "C1"
    document_id: str
    chunk_id: int


class SourceReference(MarkedSource):
    """A marked passage with its text, as it was given to the response agent."""

    text: str


# What is known of a statement and the passage it cites; `citations/check.py` decides.
CitationStatus = Literal["verified", "reviewed", "weak", "unsupported"]


class Citation(MarkedSource):
    """A marker used in the answer, checked against its passage."""

    quote: str  # the sentence of the answer that carries the marker
    citation_status: CitationStatus


class ClarificationRequest(Value):
    """What one agent asks the user, kept per role by the manager's framework."""

    reason: Reason
    message: str = ""


class ClarifyingQuestion(Value):
    """One question to the user, in their language."""

    question: str
    context: str  # why it is asked
    suggestions: list[str] = []  # what may be the answer


ClarificationType = Literal["ambiguity", "scope", "context", "choice"]


UNIVERSAL = ("needs_clarification", "clarification_reason", "clarification_message")

# The memory a turn saw when it began; written once, by whoever starts the envelope.
MEMORY: dict[str, Any] = {
    "text": str,
    "history": list[Remark],
    "summary": str,
    "facts": list[str],
    "topic": str,
    "current_time": str,
    "language_preference": Language | None,
    "open_clarification": OpenQuestion | None,
    "clarification_rounds": Annotated[int, Field(ge=0)],
    "last_agent": str,
    "context_flags": dict[str, bool],
    "refund_form": RefundForm | None,
    "billing_case_id": str,  # of the refund case that was opened last; empty: none was
    "collections": list[str],  # empty: every collection
    "documents": list[str],  # ids of the only ones to look into; empty: all of the collections
    "languages": list[str],  # of the documents, as tags; empty: every language
    "audience": str,  # that documents are for; empty: for everybody
    "offers": list[str],  # titles of documents, for when nothing was searched
    "user_id": str,
    "owner": str,  # whose content this is, for caches and budgets
    "key": str,  # id of the API key it was asked with, for budgets; empty: without one
    "leaving": list[Remark],  # messages too old for `history`, not yet in the summary
    "assistant": Persona,  # absent: none was chosen
}

# Bookkeeping of the framework and the manager; agents may read it, never write it.
BOOKKEEPING: dict[str, Any] = {
    "stage": str,
    "clarification_requests": dict[Role, ClarificationRequest],
    "search_rounds": Annotated[int, Field(ge=0)],
    "tried_searches": list[TriedSearch],
    "quality_returns": Annotated[int, Field(ge=0)],
    "best_answer": dict[str, Any],
    "plan_step": Annotated[int, Field(ge=0)],  # steps of the plan that were sent for
    "extra_rounds": Annotated[int, Field(ge=0)],  # of specialists, beyond the plan
    "enabled_routes": list[Route],
    "mode": Literal["model", "extractive", "mixed"],
    "outcome": Status,
}

WORK: dict[str, Any] = {
    "needs_clarification": bool,
    "clarification_reason": Reason,
    "clarification_message": str,
    "language": Language,
    "confidence": Unit,
    "spoken_language": Language,  # of the message, where the answer may not be in it
    "text_eng": str,
    "translation_confidence": Unit,
    "corrections": list[str],
    "corrections_made": bool,
    "canonical_question": str,
    "context_type": Literal["new_topic", "follow_up", "clarification"],
    "related_history": list[Remark],
    "response_notes": list[str],
    "retrieval_k": Annotated[int, Field(ge=1, le=50)],
    "clarification_result": Literal["search_again", "exit"] | None,
    "memory_updates": MemoryUpdates,
    "small_talk": SmallTalk | None,
    "wordings": Wordings,
    "guardrails_passed": bool,
    "guardrails_verdict": Literal["safe", "suspected", "unsafe"],
    "within_scope": bool,
    "guardrails_confidence": Unit,
    "guardrails_analysis": str,
    "route": Route,
    "route_confidence": Unit,
    "route_analysis": str,
    "query_type": QueryType,
    "complexity_score": Annotated[int, Field(ge=0, le=100)],
    "vagueness_score": Unit,
    "clarifying_questions": list[str],
    "search_results": list[Passage],
    "search_context": str,
    "search_stats": SearchStats,
    "search_quality": Literal["excellent", "good", "poor"],
    "search_error": str,
    "evaluation": Evaluation,
    "refined_query": str,
    "limitations": list[str],
    "augmented_prompt": str,
    "source_references": list[SourceReference],
    "context_structure": dict[str, Any],
    "response": str,
    "sources_used": list[Source],
    "citations_used": list[Citation],
    "generation_confidence": Unit,
    "generation_error": str,
    # By a model, quoted, or quoted from the closest place, which may not answer.
    "answer_form": Literal["written", "quoted", "closest"],
    "quality_score": Unit,
    "answer_worth": Unit,  # what a program can tell of an answer, beside the score
    "quality_decision": Literal["approve", "research", "regenerate", "approve_with_reservations"],
    "quality_analysis": str,
    "validation_result": dict[str, Any],
    "clarification_type": ClarificationType,
    "questions_asked": list[ClarifyingQuestion],
    "suggested_actions": list[str],
    "route_hint": Route | None,
    "summary_update": SummaryUpdate,
    "state_updates": StateUpdates,
    "analysis_plan": Plan,
    "analysis_request": Request,
    "synthesis_report": dict[str, Any],
    # What specialists write, also those that work at the same time.
    "agent_outputs": dict[Role, Output],
    "evidence": dict[str, Evidence],  # the passages that they name, by id
    "analysis_target": str,  # the law, policy or contract that things are measured by
    "gravest": Annotated[int, Field(ge=0, le=4)],  # of what was found: 0 nothing, 4 critical
    "documents_read": list[str],  # ids of those whose passages were named
    "shortcomings": list[Shortcoming],  # what could not be done, and why
    "is_incomplete": bool,
}

# How what is written at the same time becomes one value; all else only one agent may write.
REDUCERS: dict[str, Reducer] = {
    "agent_outputs": Reducer.MERGE_DICT,
    "evidence": Reducer.MERGE_DICT,
    "analysis_target": Reducer.KEEP_FIRST,
    "gravest": Reducer.TAKE_MAX,
    "documents_read": Reducer.UNIQUE_LIST,
    "shortcomings": Reducer.CONCATENATE,
    "is_incomplete": Reducer.OR,
}

# Written for people who read the trace: no agent, no table, no memory and no reply reads these.
TRACE = frozenset(
    {
        "confidence",
        "corrections",
        "corrections_made",
        "related_history",
        "wordings",
        "guardrails_passed",
        "within_scope",
        "guardrails_confidence",
        "guardrails_analysis",
        "route_analysis",
        "search_context",
        "complexity_score",
        "vagueness_score",
        "context_structure",
        "synthesis_report",
    }
)

ATTRIBUTES: dict[str, Any] = MEMORY | BOOKKEEPING | WORK
# The shapes without their bounds, as views state them: what is read was checked when written.
SHAPES: dict[str, Any] = get_type_hints(SimpleNamespace(__annotations__=ATTRIBUTES))
ADAPTERS: dict[str, TypeAdapter[Any]] = {
    name: TypeAdapter(shape) for name, shape in ATTRIBUTES.items()
}
