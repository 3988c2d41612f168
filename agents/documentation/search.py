"""Search: finds the passages that could answer the question."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from django.conf import settings

from agents.attributes import Passage
from agents.contract import View, Writes, agent
from agents.documentation.passages import absent, as_context, fitting, unmentioned
from agents.intake.wishes import asks_number, asks_several, beyond_form
from agents.names import Role
from agents.words import ENGLISH
from knowledge.collections import intake
from knowledge.search import search, whole_sections
from knowledge.search.typos import corrected
from knowledge.search.vector import ONLY_WORDS

# The best passages come with what stands around them in their section, so that steps, tables and
# code are whole; characters of each.
BEST, LONGEST = 3, 3000

log = logging.getLogger(__name__)


class Query(View):
    """What search reads: what to look for, where, and for whom."""

    canonical_question: str = ""
    text_eng: str = ""
    refined_query: str = ""
    retrieval_k: int | None = None
    response_notes: list[str] = []
    collections: list[str] = []
    documents: list[str] = []
    languages: list[str] = []
    audience: str = ""
    language: str = ""
    spoken_language: str = ""
    translation_confidence: float | None = None
    owner: str | None = None
    user_id: str | None = None


@agent(
    Role.SEARCH,
    reads=Query,
    writes=(
        "search_results",
        "search_context",
        "search_stats",
        "search_quality",
        "search_error",
        "canonical_question",
    ),
)
def find(view: Query) -> Writes:
    """Search the conversation's collections; `refined_query` joins in when there is one.

    A question that was searched for in other words than typed goes on in these.
    """
    question = view.canonical_question or view.text_eng
    results = search(
        question,
        collections=view.collections,
        limit=view.retrieval_k or settings.SEARCH_RESULTS_LIMIT,
        alternative=view.refined_query,
        languages=view.languages,
        audience=view.audience,
        documents=view.documents,
        # What could not be translated is as the user wrote it.
        spoken=ENGLISH if view.translation_confidence else view.spoken_language or view.language,
        reuse=f"{view.owner}/{view.user_id}",
    )
    whole = whole_sections([each.chunk_id for each in results.passages[:BEST]], LONGEST)
    passages = [
        Passage.model_validate(
            replace(passage, text=whole.get(passage.chunk_id, passage.text)), from_attributes=True
        )
        for passage in results.passages
    ]
    used = fitting(passages, settings.MAX_CONTEXT_LENGTH)
    context = as_context(used)
    is_foreign = bool(results.stats.get("is_foreign"))
    state = intake(view.collections) if results.quality == "poor" else None
    replaced = results.stats.get("corrected") or {}
    return ({"canonical_question": corrected(question, replaced)} if replaced else {}) | {
        "search_results": passages,
        "search_context": context,
        "search_stats": results.stats
        | {
            "total": len(passages),
            "used": len(used),
            "context_length": len(context),
            "average_score": average(p.cosine for p in used),
            "absent": [] if is_foreign else sorted(absent(question, used)),
            "unproven": unproven(view, question, used, is_foreign=is_foreign)
            if results.quality == "excellent"
            else [],
        }
        | ({"taken_in": (state.finished, state.items)} if state else {}),
        "search_quality": results.quality,
        "search_error": reason(results.error),
    }


def unproven(
    view: Query, question: str, passages: Sequence[Passage], *, is_foreign: bool
) -> list[str]:
    """Return what is wished for that passages may lack though they are near to the question.

    Nearness tells what a passage is about, and not that it has an example, all that is compared,
    a number, or the version somebody names.
    """
    wishes = beyond_form(view.response_notes)
    if asks_several(question) or (view.retrieval_k or 0) > settings.SEARCH_RESULTS_LIMIT:
        wishes.append("several places")
    numbers = any(char.isdigit() for passage in passages[:BEST] for char in passage.text)
    if asks_number(question) and not numbers:
        wishes.append("a number")
    return wishes if is_foreign else wishes + unmentioned(question, passages)


def reason(error: str) -> str:
    """Return why a search could only run in part, for whoever asked; the log has the rest."""
    if not error:
        return ""
    log.warning("search: %s", error)
    return ONLY_WORDS


def average(cosines: Iterable[float | None]) -> float | None:
    """Return the mean of the cosines that are known."""
    known = [cosine for cosine in cosines if cosine is not None]
    return round(fmean(known), 4) if known else None
