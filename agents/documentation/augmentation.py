"""Augmentation: puts question and passages into the one text an answer is made from."""

from django.conf import settings

from agents.attributes import Passage, SourceReference
from agents.contract import View, Writes, agent
from agents.documentation.passages import fitting, heading
from agents.names import Role
from prompts.prompt import Block, marked


class Material(View):
    """What augmentation reads: the question, its wishes, and the passages for the answer."""

    search_results: list[Passage] = []
    canonical_question: str = ""
    language: str = ""
    text: str = ""
    limitations: list[str] = []
    response_notes: list[str] = []


@agent(
    Role.AUGMENTATION,
    reads=Material,
    writes=("augmented_prompt", "source_references", "context_structure"),
)
def assemble(view: Material) -> Writes:
    """Number the passages from C1, each with where it stands, and mark what others wrote as data.

    The question comes in English, and as the user wrote it where that differs.
    """
    passages = fitting(view.search_results, settings.MAX_CONTEXT_LENGTH)
    references = [_reference(f"C{number}", p) for number, p in enumerate(passages, start=1)]
    question = view.canonical_question or view.text
    blocks = [
        Block("passage", f"{_place(p)}# {heading(p)}\n{p.text}", {"marker": r.marker})
        for p, r in zip(passages, references, strict=True)
    ]
    blocks.append(Block("limitations", "\n".join(view.limitations)))
    if view.text and view.text.strip() != question.strip():
        blocks.append(Block("as_written", view.text))
    blocks.append(Block("wishes", "\n".join(view.response_notes)))
    blocks.append(Block("question", question))
    return {
        "augmented_prompt": marked("prompt", blocks),
        "source_references": references,
        "context_structure": {
            "passages": len(references),
            "documents": len({r.document_id for r in references}),
            "characters": sum(len(r.text) for r in references),
            "left_out": len(view.search_results) - len(references),
            "language": view.language,
        },
    }


def _reference(marker: str, passage: Passage) -> SourceReference:
    shared = passage.model_dump(exclude={"language", "cosine", "score"})
    # A cosine may be a little more than 1, and below 0, which says as little as 0.
    score = None if passage.cosine is None else min(1.0, max(0.0, passage.cosine))
    return SourceReference(marker=marker, score=score, **shared)


def _place(passage: Passage) -> str:
    """The crumbs of a passage on a line above it, where there are any."""
    return f"{' > '.join(passage.crumbs)}\n" if passage.crumbs else ""
