"""Augmentation: puts question and passages into the one text an answer is made from."""

import re

from django.conf import settings

from agents.attributes import Passage, SourceReference
from agents.contract import View, Writes, agent
from agents.documentation.passages import fitting, heading, referenced
from agents.names import Role
from prompts.prompt import Block, marked

# A line of a passage that looks like the beginning of the next one.
OTHERS_MARKER, ESCAPED = re.compile(r"^([ \t]*)\[(?=C\d+\])", re.MULTILINE), r"\1\\["


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

    The question comes last: in English, and as the user wrote it where that differs.
    """
    passages = fitting(view.search_results, settings.MAX_CONTEXT_LENGTH)
    references = [referenced(f"C{number}", p) for number, p in enumerate(passages, start=1)]
    question = view.canonical_question or view.text
    blocks = [
        Block("passages", "\n\n".join(map(_listed, passages, references))),
        Block("limitations", "\n".join(view.limitations)),
    ]
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


def _listed(passage: Passage, reference: SourceReference) -> str:
    """A passage below its marker and where it stands; its text cannot begin another one.

    All passages are one element. An element of its own for each took 265 of 1,547 tokens, the
    median of 40 questions, in the tokenizer of Qwen2.5.
    """
    place = " > ".join((*passage.crumbs, heading(passage)))
    return f"[{reference.marker}] {place}\n{OTHERS_MARKER.sub(ESCAPED, passage.text)}"
