"""Document tools: how specialists look into documents, within what the caller may see.

Every passage has an id (`agents.analysis.evidence`); nothing else that a tool says can be cited.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

from django.db.models import Q, QuerySet
from pydantic import Field, StringConstraints

from agents.analysis.evidence import PASSAGES, as_told, of_passage, of_runs
from agents.analysis.shapes import Evidence
from agents.models import ToolRun
from agents.names import Role
from agents.tools.tool import Arguments, Caller, Finding, RefusedArguments, tool
from agents.tools.toolbox import unwritten
from knowledge import search as knowledge_search
from knowledge.errors import UnknownCollection
from knowledge.language import surely
from knowledge.models import Document
from knowledge.search import Passage, SearchResult

USUAL, MOST = 6, 10  # passages that a tool gives
FARTHEST = 3  # neighbours on either side
MOST_DOCUMENTS = 50  # of a list
MOST_SECTIONS = 100  # of an outline
LONGEST_DESCRIPTION = 200  # characters, in a list
SECONDS = 10.0
# Declares a tool that gives passages, which a model is told one by one.
passage_tool = partial(tool, timeout=SECONDS, retries=1, told=as_told)
# What each level counts where it is asked alone. Of all chunks of a section its vector says the
# same, so what chunks themselves say decides between them.
KEYWORD = {"keyword": 1.0}
SEMANTIC = {"semantic": 1.0}
HIERARCHICAL = {"hierarchical": 1.0, "summary": 0.5, "semantic": 0.25}

Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000)]
PassageId = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^\[?p[0-9a-f]{8}\]?$")
]


class Wanted(Arguments):
    """What to look for."""

    query: Query = Field(description="what to look for, in words that documents would use")
    limit: int = Field(default=USUAL, ge=1, le=MOST, description=f"passages; usually {USUAL}")
    document: Name = Field(
        default="", description="id, title or source of the only document to look into; empty: all"
    )


class Place(Arguments):
    """Beside which passage."""

    passage: PassageId = Field(description="id of a passage that a tool gave, like p1a2b3c4d")
    distance: int = Field(
        default=1, ge=1, le=FARTHEST, description="passages before and after it; usually 1"
    )


class WhichDocument(Arguments):
    """Which document."""

    document: Annotated[Name, StringConstraints(min_length=1)] = Field(
        description="its id, as passages have it, or its title or source"
    )


class WhichDocuments(Arguments):
    """Which part of the list."""

    collection: Name = Field(default="", description="name of the only collection; empty: all")
    title: Name = Field(default="", description="part of the title; empty: any")
    offset: int = Field(default=0, ge=0, le=1_000_000, description="how many to leave out; first 0")


@contextmanager
def in_reach() -> Iterator[None]:
    """Say as a refusal that a collection is not there. Raises RefusedArguments."""
    try:
        yield
    except UnknownCollection as error:
        raise RefusedArguments(str(error)) from error


def documents_of(caller: Caller) -> QuerySet[Document]:
    """Return the documents that the caller may see, without their texts."""
    documents = Document.objects.select_related("collection").defer("content")
    if caller.collections:
        documents = documents.filter(collection__name__in=caller.collections)
    else:
        documents = documents.filter(collection__only_by_name=False)
    if caller.documents:
        documents = documents.filter(pk__in=caller.documents)
    if caller.languages:
        spoken = Q(pk__in=[])
        for language in caller.languages:
            spoken |= Q(language__iexact=language) | Q(language__istartswith=f"{language}-")
        documents = documents.filter(spoken)
    return documents.filter(audience__in=("", caller.audience)) if caller.audience else documents


def document_named(name: str, caller: Caller) -> Document:
    """Return the document of that id, source or title. Raises RefusedArguments."""
    documents = documents_of(caller)
    for condition in (Q(pk=name), Q(source=name), Q(title__iexact=name)):
        found = list(documents.filter(condition)[:5])
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(each.pk for each in found)
            raise RefusedArguments(f"Several documents are called {name!r}; name one by id: {ids}.")
    raise RefusedArguments(
        f"There is no document {name!r} here. Name it by the document_id of one of its passages, "
        "or by its exact title."
    )


def finding(passages: Sequence[Passage], **more: Any) -> Finding:
    """Return passages as what a tool gives, with what else there is to say."""
    evidence = [of_passage(each).model_dump() for each in passages]
    return Finding({PASSAGES: evidence, **more}, is_empty=not evidence)


def look_for(wanted: Wanted, caller: Caller, **levels: Any) -> SearchResult:
    """Search as the caller may. Raises RefusedArguments."""
    with in_reach():
        named = [document_named(wanted.document, caller).pk] if wanted.document else []
        return knowledge_search.search(
            wanted.query,
            collections=caller.collections,
            limit=wanted.limit,
            languages=caller.languages,
            audience=caller.audience,
            documents=named or caller.documents,
            spoken=surely(wanted.query),
            reads=False,
            **levels,
        )


def given_to(caller: Caller, role: str = "") -> dict[str, Evidence]:
    """Return the passages that tools gave in this turn by now, by id; only to a role, if named."""
    if not caller.turn_id:
        return {}
    written = ToolRun.objects.filter(envelope=uuid.UUID(caller.turn_id)).order_by("pk")
    runs = [*written, *unwritten()]
    return of_runs(run for run in runs if not role or run.role == role)


def given_passage(name: str, caller: Caller) -> Evidence:
    """Return the passage of that id. Raises RefusedArguments."""
    given = given_to(caller)
    if found := given.get(name.strip("[]")):
        return found
    raise RefusedArguments(
        f"No tool gave a passage {name}. Write an id as a search gave it, like "
        f"{next(iter(given), 'p1a2b3c4d')}."
    )


@passage_tool(roles=[Role.EXTRACTOR, Role.CLASSIFIER, Role.CITATION_AUDITOR], critical=True)
def search(arguments: Wanted, caller: Caller) -> Finding:
    """Find passages by words and by meaning. The best way to begin; says how sure it is."""
    result = look_for(arguments, caller)
    return finding(
        result.passages,
        quality=result.quality,
        confidence=result.stats.get("confidence"),
        threshold=result.stats.get("threshold"),
        **({"note": "Only words were compared."} if result.error else {}),
    )


@passage_tool(roles=[Role.ORCHESTRATOR], critical=True)
def bm25_search(arguments: Wanted, caller: Caller) -> Finding:
    """Find passages that hold these very words: names, numbers of clauses, codes."""
    return finding(look_for(arguments, caller, weights=KEYWORD).passages)


@passage_tool(roles=[Role.RISK_VERIFIER], critical=True)
def similarity_search(arguments: Wanted, caller: Caller) -> Finding:
    """Find passages that mean something similar, in whatever words. Give it a whole statement."""
    result = look_for(arguments, caller, weights=SEMANTIC)
    if result.error:
        return Finding({PASSAGES: [], "note": "Meanings cannot be compared now."}, is_empty=True)
    return finding(result.passages)


@passage_tool(
    roles=[Role.EXTRACTOR, Role.REQUIREMENT_EXTRACTOR, Role.GAP_SYNTHESIZER], critical=True
)
def hierarchical_search(arguments: Wanted, caller: Caller) -> Finding:
    """Find the documents and sections about a subject, with a passage of each section."""
    passages = look_for(arguments, caller, weights=HIERARCHICAL).passages
    outline: dict[str, dict[str, Any]] = {}
    for each in passages:
        document = outline.setdefault(each.document_id, {"title": each.title, "sections": []})
        document["sections"].append(each.section)
    return finding(passages, documents=[{"id": id_, **each} for id_, each in outline.items()])


@passage_tool(roles=[Role.EXTRACTOR])
def expand_context(arguments: Place, caller: Caller) -> Finding:
    """Read on before and after a passage, in the order of its document."""
    passage = given_passage(arguments.passage, caller)
    if not documents_of(caller).filter(pk=passage.document_id).exists():
        raise RefusedArguments(f"The document of {passage.id} is not there any more.")
    around = knowledge_search.beside(passage.chunk_id, arguments.distance)
    if not around:
        raise RefusedArguments(f"{passage.id} is not there any more: its document was changed.")
    known = given_to(caller, caller.role)
    fresh = [each for each in around if of_passage(each).id not in known]
    note = {} if fresh else {"note": "There is nothing more: you have all that stands beside it."}
    return Finding(
        {PASSAGES: [of_passage(each).model_dump() for each in around], **note},
        adds_nothing=not fresh,
    )


@passage_tool(roles=[Role.EXTRACTOR, Role.CLASSIFIER, Role.CITATION_AUDITOR], critical=True)
def get_document_info(arguments: WhichDocument, caller: Caller) -> dict[str, Any]:
    """Look up what a document is: title, version, date, language, summary, sections."""
    document = document_named(arguments.document, caller)
    paths = document.sections.order_by("number").values_list("path", flat=True)
    outline = list(dict.fromkeys(" > ".join(path) for path in paths if path))
    return {
        **listed(document),
        "audience": document.audience,
        "crumbs": document.crumbs,
        "summary": document.summary,
        "keypoints": document.keypoints,
        "keywords": document.keywords,
        "passages_in_all": document.chunks.count(),
        "earlier_versions": document.versions.count(),
        "sections": outline[:MOST_SECTIONS],
        "sections_left_out": max(0, len(outline) - MOST_SECTIONS),
    }


@tool(roles=[Role.ORCHESTRATOR], timeout=SECONDS, retries=1)
def get_document_list(arguments: WhichDocuments, caller: Caller) -> Finding:
    """List the documents that can be searched, in the order of their titles."""
    documents = documents_of(caller).order_by("title", "pk")
    if arguments.collection:
        documents = documents.filter(collection__name=arguments.collection)
    if arguments.title:
        documents = documents.filter(title__icontains=arguments.title)
    shown = documents[arguments.offset : arguments.offset + MOST_DOCUMENTS]
    rows = [listed(each) for each in shown]
    return Finding({"total": documents.count(), "documents": rows}, is_empty=not rows)


def listed(document: Document) -> dict[str, Any]:
    """Return what a list says of a document."""
    updated = document.last_updated
    return {
        "id": document.pk,
        "title": document.title,
        "source": document.source,
        "collection": document.collection.name,
        "language": document.language,
        "version": document.version,
        "edition": document.edition,
        "last_updated": updated.isoformat() if updated else None,
        "description": document.description[:LONGEST_DESCRIPTION],
    }
