"""Query expansion: lets a model write what else to search for beside the question."""

from collections.abc import Callable, Sequence

from pydantic import BaseModel, Field

from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure
from agents.steps.model_context import search_model
from agents.words import list_languages
from knowledge.search import expansion
from knowledge.search.expansion import NO_MODEL, Kind, NotExpandedError
from prompts.prompt import Prompt

EXPAND = Prompt("expansion", "question", "languages")
HYDE = Prompt("hyde", "question", "language")

# The question is what was asked, and weighs 1; the rest are guesses. Three wordings together weigh
# about what it does, so they find what it misses and do not outvote it. A made-up passage is
# compared by its vector only, and may be wrong throughout: half.
WORDINGS, EXPAND_WEIGHT = 3, 0.3
HYDE_WEIGHT = 0.5
# Characters of a passage: what the embedding model sees of one.
PASSAGE = 1200
SILENT = "the model failed: it wrote nothing else to search for"


class Rewordings(BaseModel):
    """The question in other words."""

    wordings: list[str] = Field(max_length=10)


def register() -> None:
    """Have questions expanded by the model, where there is one and SEARCH_EXPANSION says so."""
    expansion.register(alternatives)


def alternatives(question: str, languages: Sequence[str]) -> list[tuple[Kind, str, float]]:
    """Return what else to search for, in the name of the step that searches.

    `languages` are the codes of those the documents are written in, the commonest first: a
    question comes in English, whatever they are.

    One call for each kind; what one of them brought is used when the other failed. Raises
    NotExpandedError when there is no model, or nothing came of it.
    """
    llm = search_model()
    if llm is None:
        raise NotExpandedError(NO_MODEL)
    wordings: list[tuple[Kind, str, float]] = []
    failures = []
    for kind in expansion.enabled_kinds():
        try:
            wordings += WRITERS[kind](llm, question, languages)
        except ModelFailure as failure:
            failures.append(f"the model failed: {failure.outcome}: {failure}")
    if not wordings:
        raise NotExpandedError("; ".join(failures) or SILENT)
    return wordings


def reworded(llm: Model, question: str, languages: Sequence[str]) -> list[tuple[Kind, str, float]]:
    """Return up to three other wordings. Raises ModelFailure."""
    language_names = list_languages(languages)
    wordings = llm.ask(EXPAND, Rewordings, question=question, languages=language_names).wordings
    known = {question.strip().casefold()}
    others = [
        text for text in dict.fromkeys(map(str.strip, wordings)) if text.casefold() not in known
    ]
    return [("expand", text, EXPAND_WEIGHT) for text in others[:WORDINGS]]


def imagined(llm: Model, question: str, languages: Sequence[str]) -> list[tuple[Kind, str, float]]:
    """Return a passage as a document would have it that answers. Raises ModelFailure.

    Gao and others 2022, "Precise zero-shot dense retrieval without relevance labels".
    """
    passage = llm.write(
        HYDE, question=question, language=list_languages(languages[:1])
    ).text.strip()
    return [("hyde", passage[:PASSAGE], HYDE_WEIGHT)] if passage else []


WRITERS: dict[Kind, Callable[[Model, str, Sequence[str]], list[tuple[Kind, str, float]]]] = {
    "expand": reworded,
    "hyde": imagined,
}
