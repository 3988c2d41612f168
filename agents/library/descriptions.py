"""Descriptions: lets a model describe documents while they are taken in."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db.models import Min
from pydantic import BaseModel, Field

from agents.llm import cost
from agents.llm.journal import Subject, document_subject
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Choice, Request, Usage
from agents.models import ModelCall
from agents.names import ENRICHMENT
from knowledge import enrichment, model_calls
from knowledge.changes import digest
from knowledge.enrichment import Enrichment
from knowledge.parsing import Page
from prompts.prompt import Prompt

PROMPT = Prompt("enrichment", "title", "outline", "text")
# Characters of a document that a model reads, some 3,500 tokens: how it begins, and its headings.
BEGINNING, OUTLINE = 12_000, 2_000


class Description(BaseModel):
    """What the model says of a document. Longer than asked for is cut, not refused."""

    description: str = Field(min_length=1, max_length=600)
    summary: str = Field(min_length=1, max_length=2000)
    keypoints: list[str] = Field(max_length=12)
    keywords: list[str] = Field(max_length=30)


def register() -> None:
    """Have documents described by the model, where there is one."""
    enrichment.register(describe)
    model_calls.register(
        model_calls.DESCRIPTION,
        model_calls.Question(
            has_model, partial(first_answers, PROMPT), is_on_request, estimate_descriptions
        ),
    )


def describe(page: Page, by_rules: Enrichment) -> Enrichment:
    """Return the model's description, of a failure the one by rules with a warning.

    One call per text: whoever asks about the same text again gets the same reply, however long
    ago it came and whether or not the document was stored. What the page says itself is kept.
    """
    llm = model_of(page.content)
    if llm is None or enrichment.says_all(page):
        return by_rules
    try:
        description = llm.ask(
            PROMPT, Description, title=page.title, outline=outline(page), text=beginning(page)
        )
    except ModelFailure as failure:
        return replace(
            by_rules, warnings=[f"described by its own words, the model failed: {failure}"]
        )
    return merged(page, by_rules, description)


def has_model() -> bool:
    """Tell whether a model is set that is asked about documents."""
    return bool(settings.MODELS[ENRICHMENT].model)


def is_on_request() -> bool:
    """Tell whether documents are described only where somebody asks for it.

    GEN_MODEL says who answers questions. How many documents will come, and so what describing them
    costs, whoever set it did not know.
    """
    return bool(settings.DESCRIBE_ON_REQUEST)


def estimate_descriptions(texts: Iterable[tuple[str, str]]) -> model_calls.Estimate:
    """Return what it takes to describe documents, given as titles and texts, without a repair."""
    choice = settings.MODELS[ENRICHMENT]
    usages = [cost.estimate(_request(choice, *text)) for text in texts]
    read = sum(usage.input_tokens or 0 for usage in usages)
    most = sum(usage.output_tokens or 0 for usage in usages)
    price = cost.cost(choice.model, Usage(read, most))
    known = None if price is None else float(price)
    return model_calls.Estimate(choice.model, len(usages), read, most, known)


def _request(choice: Choice, title: str, text: str) -> Request:
    page = Page(text, title=title)
    rendered = PROMPT.render({"title": title, "outline": outline(page), "text": beginning(page)})
    return Request(choice.model, rendered.messages, choice.max_tokens, choice.temperature)


def first_answers(prompt: Prompt, digests: Collection[str]) -> Mapping[str, datetime]:
    """Return when a model first answered this prompt about texts, by their digests."""
    subjects = {document_subject(digest): digest for digest in digests}
    # Of a deleted document the calls are kept without their replies.
    calls = ModelCall.objects.filter(
        subject__in=subjects, prompt=prompt.name, outcome=Outcome.OK
    ).exclude(reply="")
    first = calls.order_by().values_list("subject").annotate(Min("created"))
    return {subjects[subject]: created for subject, created in first}


def model_of(text: str) -> Model | None:
    """Return the model that is asked about a document's text; None when none is set."""
    choice = settings.MODELS[ENRICHMENT]
    if not choice.model:
        return None
    # Never a first attempt: the text may have been asked about before, by whomever.
    return Model(choice, Subject(document_subject(digest(text)), ENRICHMENT))


def beginning(page: Page) -> str:
    """Return the text, of a long one the beginning up to the end of a paragraph or line."""
    if len(page.content) <= BEGINNING:
        return page.content
    cut = page.content[:BEGINNING]
    return cut[: max(cut.rfind("\n"), BEGINNING // 2)] + "\n…"


def outline(page: Page) -> str:
    """Return the headings of a text that is too long to be read whole."""
    if len(page.content) <= BEGINNING:
        return ""
    return "\n".join(enrichment.headings(page.content))[:OUTLINE]


def merged(page: Page, by_rules: Enrichment, by_model: Description) -> Enrichment:
    """Return the page's own words first, then the model's, then those found by rules."""
    model_words = [word for each in by_model.keywords for word in enrichment.words(each)]
    keywords = list(dict.fromkeys([*page.keywords, *model_words, *by_rules.keywords]))
    points = [enrichment.shortened(each, enrichment.LINE_LENGTH) for each in by_model.keypoints]
    return replace(
        by_rules,
        description=page.description
        or enrichment.shortened(by_model.description, enrichment.LINE_LENGTH),
        summary=page.summary or enrichment.shortened(by_model.summary, enrichment.SUMMARY_LENGTH),
        keypoints=page.keypoints
        or [each for each in points if each][: enrichment.KEYPOINTS_LIMIT]
        or by_rules.keypoints,
        keywords=keywords[: enrichment.KEYWORDS_LIMIT],
    )
