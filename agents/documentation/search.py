"""Search: finds the passages that could answer the question."""

from dataclasses import replace

from django.conf import settings

from agents.attributes import Passage
from agents.contract import View, Writes, agent
from agents.documentation.passages import as_context, fitting
from agents.names import Role
from knowledge.search import search, whole_sections

# The best passages come with what stands around them in their section, so that steps, tables and
# code are whole; characters of each.
BEST, LONGEST = 3, 3000


class Query(View):
    """What search reads: what to look for, where, and for whom."""

    canonical_question: str = ""
    text_eng: str = ""
    refined_query: str = ""
    retrieval_k: int | None = None
    collections: list[str] = []
    owner: str | None = None
    user_id: str | None = None


@agent(
    Role.SEARCH,
    reads=Query,
    writes=("search_results", "search_context", "search_stats", "search_quality", "search_error"),
)
def find(view: Query) -> Writes:
    """Search the conversation's collections; `refined_query` joins in when there is one."""
    question = view.canonical_question or view.text_eng
    results = search(
        question,
        collections=view.collections,
        limit=view.retrieval_k or settings.SEARCH_RESULTS_LIMIT,
        alternative=view.refined_query,
        reuse=f"{view.owner}/{view.user_id}",
    )
    whole = whole_sections([each.chunk_id for each in results.passages[:BEST]], LONGEST)
    passages = [
        Passage.model_validate(
            replace(passage, text=whole.get(passage.chunk_id, passage.text)), from_attributes=True
        )
        for passage in results.passages
    ]
    return {
        "search_results": passages,
        "search_context": as_context(fitting(passages, settings.MAX_CONTEXT_LENGTH)),
        "search_stats": results.stats,
        "search_quality": results.quality,
        "search_error": results.error,
    }
