"""Augmentation: puts question and passages into the one text an answer is made from."""

import re

from django.conf import settings

from agents.attributes import Passage, SourceReference
from agents.contract import View, Writes, agent
from agents.documentation.context import fitting
from agents.names import Role

TAG = re.compile(r"<(/?\s*(?:question|passage|passages|wishes|limitations)\b)", re.IGNORECASE)


def _as_data(text: str) -> str:
    """Keep `text` from closing the element it stands in: whatever it says, it stays data."""
    return TAG.sub(r"&lt;\1", text)


def _element(name: str, content: str, **attributes: str) -> str:
    marks = "".join(
        f' {key}="{_as_data(value).replace(chr(34), chr(39))}"' for key, value in attributes.items()
    )
    return f"<{name}{marks}>\n{_as_data(content)}\n</{name}>"


def _reference(marker: str, passage: Passage) -> SourceReference:
    shared = passage.model_dump(exclude={"language", "cosine"})
    return SourceReference(marker=marker, **shared)


@agent(
    Role.AUGMENTATION,
    reads=(
        "search_results",
        "search_context",
        "canonical_question",
        "language",
        "text",
        "limitations",
        "response_notes",
    ),
    writes=("augmented_prompt", "source_references", "context_structure"),
)
def assemble(view: View) -> Writes:
    """Number the passages from C1 and mark everything others wrote as data."""
    passages = fitting(view.search_results or [], settings.MAX_CONTEXT_LENGTH)
    references = [_reference(f"C{number}", p) for number, p in enumerate(passages, start=1)]
    parts = [_element("question", view.canonical_question or view.text or "")]
    if view.response_notes:
        parts.append(_element("wishes", "\n".join(view.response_notes)))
    if view.limitations:
        parts.append(_element("limitations", "\n".join(view.limitations)))
    parts.extend(
        _element("passage", r.text, marker=r.marker, title=r.title, section=r.section)
        for r in references
    )
    return {
        "augmented_prompt": "\n\n".join(parts),
        "source_references": references,
        "context_structure": {
            "passages": len(references),
            "documents": len({r.document_id for r in references}),
            "characters": sum(len(r.text) for r in references),
            "left_out": len(view.search_results or []) - len(references),
            "language": view.language or "",
        },
    }
