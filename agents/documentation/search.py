"""Search: finds the passages that could answer the question."""

from django.conf import settings

from agents.attributes import Passage
from agents.contract import View, Writes, agent
from agents.documentation.context import as_context, fitting
from agents.names import Role
from knowledge.search import search


@agent(
    Role.SEARCH,
    reads=(
        "canonical_question",
        "text_eng",
        "refined_query",
        "retrieval_k",
        "collections",
        "owner",
        "user_id",
    ),
    writes=("search_results", "search_context", "search_stats", "search_quality", "search_error"),
)
def find(view: View) -> Writes:
    """Search the conversation's collections; `refined_query` joins in when there is one."""
    question = view.canonical_question or view.text_eng or ""
    found = search(
        question,
        collections=view.collections or [],
        limit=view.retrieval_k or settings.SEARCH_RESULTS_LIMIT,
        alternative=view.refined_query or "",
        reuse=f"{view.owner}/{view.user_id}",
    )
    passages = [Passage.model_validate(passage, from_attributes=True) for passage in found.passages]
    return {
        "search_results": passages,
        "search_context": as_context(fitting(passages, settings.MAX_CONTEXT_LENGTH)),
        "search_stats": found.stats,
        "search_quality": found.quality,
        "search_error": found.error,
    }
