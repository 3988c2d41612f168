"""Forgetting: replies that came of a document are not used again once it changed or is gone."""

from typing import Any

from agents.models import ModelCall
from knowledge.changes import documents_changed


def subject_of(digest: str) -> str:
    """Return what calls made for a document's text are filed under."""
    return f"document/{digest}"


def register() -> None:
    """Listen to changes of documents."""
    documents_changed.connect(forget)


def forget(sender: object, documents: list[str], unsaid: list[str], **_: Any) -> None:
    """Take calls that quoted a document out of the cache; empty those made for a deleted one.

    What a turn was answered stays in its trace, and what a call cost in the bill.
    """
    quoting = ModelCall.objects.filter(reusable=True, documents__overlap=documents)
    quoting.update(reusable=False)
    about = ModelCall.objects.filter(subject__in=[subject_of(digest) for digest in unsaid])
    said: dict[str, Any] = {"reply": "", "tool_calls": [], "error": "", "attempts": []}
    about.update(reusable=False, request={}, request_hash="", mends="", **said)
