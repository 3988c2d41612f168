"""Rounds: each search of a turn with what it found, and what the evaluator made of it."""

from collections.abc import Sequence
from typing import Any

from agents.models import Step
from agents.names import Role

PASSAGE = (
    "chunk_id", "document_id", "version", "title", "section", "source", "score", "cosine", "text",
)  # fmt: skip


def plan(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what essence and router decided: what is looked for, where, and how it is answered."""
    names = (
        "canonical_question",
        "context_type",
        "wordings",
        "retrieval_k",
        "response_notes",
        "route",
        "route_confidence",
        "query_type",
    )
    return {name: payload.get(name) for name in names}


def rounds(steps: Sequence[Step], reads: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return `{round, step, query, quality, error, passages, verdict}` for every search that ended.

    `reads` holds what each step read. `query` is what was searched for; after the first round the
    refined one. `verdict` is the evaluator's, None when the passages went to the answer unjudged.
    """
    found: list[dict[str, Any]] = []
    for step, read in zip(steps, reads, strict=True):
        if step.role == Role.SEARCH and step.status == Step.Status.DONE:
            found.append(_round(len(found) + 1, step, read))
        elif step.role == Role.EVALUATOR and found and step.output:
            found[-1]["verdict"] = {
                **(step.output.get("evaluation") or {}),
                "refined_query": step.output.get("refined_query", ""),
                "mode": step.mode,
            }
    return found


def _round(number: int, step: Step, read: dict[str, Any]) -> dict[str, Any]:
    wrote = step.output
    return {
        "round": number,
        "step": step.number,
        "query": read.get("refined_query")
        or read.get("canonical_question")
        or read.get("text_eng"),
        "quality": wrote.get("search_quality"),
        "error": wrote.get("search_error") or None,
        "passages": [
            {name: passage.get(name) for name in PASSAGE}
            for passage in wrote.get("search_results") or []
        ],
        "verdict": None,
    }
