"""Completion: runs a job to its end, and brings documents, indexes and its report up to date."""

import uuid
from collections.abc import Iterable

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from knowledge.errors import EmbeddingUnavailable, Unreadable
from knowledge.identifiers import LOCAL_MODEL
from knowledge.ingestion import multilingual
from knowledge.ingestion.drafts import Draft, Prepare, Sheet, describe_by_models, draft, draw_graph
from knowledge.ingestion.job_lease import JobLease, acquire
from knowledge.ingestion.job_vectors import Encoder
from knowledge.ingestion.jobs import Status, drop_expired, end
from knowledge.ingestion.page_marks import keep_marks
from knowledge.ingestion.pipeline import Pipeline, Watch
from knowledge.ingestion.plan import plan_findings
from knowledge.ingestion.removal import delete
from knowledge.ingestion.report import Problem, Report, report
from knowledge.ingestion.sources import Findings
from knowledge.ingestion.state import CollectionState, questions_of
from knowledge.ingestion.store import lock_collection, move_to_copies, store
from knowledge.models import Copy, Document, Ingest
from knowledge.parsing import Page
from knowledge.search import postings, vector_indexes

REASON = "its file, entry or page is gone"


def run(ingest_id: uuid.UUID | str, watch: Watch | None = None) -> Report | None:
    """Work on a job until it ends; may be called any number of times, by any number of workers.

    Goes on where an earlier attempt stopped: what is finished is skipped, and every document is
    stored once. Returns None when there is nothing to do: another worker has it, it has ended or
    was cancelled, or it is gone. Files that cannot be read are an outcome and no exception.
    Raises KnowledgeError when it may work another time; the job is then queued again, and failed
    after three attempts without progress.
    """
    with acquire(ingest_id) as lease:
        if lease is None:
            return None
        with Pipeline(lease, watch) as pipeline:
            pipeline.work()
            result = complete(pipeline)
        drop_expired()
        return result
    return None  # cancelled, or taken over by another worker


def ingest(
    findings: Findings,
    *,
    collection: str,
    keep_missing: bool = False,
    force: bool = False,
    watch: Watch | None = None,
) -> Report:
    """Bring the collection of that name, made when missing, to what the files say, right here.

    A job is made and run to its end in this process. Raises what `plan` and `run` raise.
    """
    job = plan_findings(collection, findings, force=force, keep_missing=keep_missing)
    return run(job.pk, watch) or report(job)


def complete(pipeline: Pipeline) -> Report:
    """Follow files that are gone, and end the job. Every step may be repeated."""
    lease = pipeline.lease
    if not lease.job.options.get("keep_missing"):
        remove_gone(lease, pipeline.state)
    promote_copies(pipeline)
    refresh_indexes(lease, pipeline.encoder)
    problem = fill_multilingual(lease) if settings.CROSS_LINGUAL else ""
    result = report(lease.job)
    if problem:
        result.warnings.append(Problem(multilingual.NAME, problem))
    if lease.job.source_id:
        keep_marks(lease.job, pipeline.marks)
    result.removed = lease.job.report.get("removed", 0)
    result.receipt = lease.job.report.get("receipt", "")
    with transaction.atomic():
        lease.fence()
        if result.is_useful or multilingual.is_background(lease.job):
            end(lease.own_row, Status.DONE, report=result.as_json())
        else:
            reasons = dict.fromkeys(problem.reason for problem in result.skipped)
            sentence = "; ".join(reasons) or "There was nothing to ingest."
            end(lease.own_row, Status.FAILED, report=result.as_json(), error=sentence[:2000])
    return result


def refresh_indexes(lease: JobLease, encoder: Encoder) -> None:
    """Bring up to date what searches of the collection go by.

    Before the job ends: nobody would do it for a worker that dies after that.
    """
    postings.refresh(lease.job.collection_id)
    if encoder.model.name != LOCAL_MODEL and report(lease.job).is_useful:
        vector_indexes.ensure(encoder.model.name, encoder.model.dimensions)


def fill_multilingual(lease: JobLease) -> str:
    """Fill in the vectors of the second model; return why that was not possible.

    Documents that were taken in are not refused for want of it.
    """
    try:
        multilingual.fill_missing(lease)
    except EmbeddingUnavailable as error:
        if multilingual.is_background(lease.job):
            raise
        return str(error)
    return ""


def remove_gone(lease: JobLease, state: CollectionState) -> None:
    """Delete the documents whose file, entry or page is gone; one that has a copy moves there."""
    job = lease.job
    with transaction.atomic():
        lease.fence()
        lock_collection(job.collection)
        Copy.objects.filter(pk__in=[copy.pk for copy in lost_copies(state)]).delete()
        documents = lost_documents(state)
        new_homes = copies_by_document(documents)
        removed = [document for document in documents if document.pk not in new_homes]
        if removed:
            receipt = delete(removed, by=f"ingest {job.pk}", reason=REASON)
            count = job.report.get("removed", 0) + len(removed)
            job.report = {"removed": count, "receipt": str(receipt.pk)}
            Ingest.objects.filter(pk=job.pk).update(report=job.report)
        move_to_copies([document for document in documents if document.pk in new_homes], new_homes)
        job.items.exclude(gone=[]).update(gone=[])


def lost_documents(state: CollectionState) -> list[Document]:
    """Return the documents whose file, entry or page is gone, without their texts."""
    job = state.job
    documents = Document.objects.filter(collection=job.collection).defer("content", "summary")
    # A job that is tried again lists the folder as it was: what came later is none of its business.
    listed = documents.filter(in_reach(state), updated__lte=job.created)
    lost = [document for document in listed if state.is_gone(document.origin)]
    for origin, sources in job.items.exclude(gone=[]).values_list("origin", "gone"):
        lost += documents.filter(origin=origin, source__in=sources)
    return list({document.pk: document for document in lost}.values())


def lost_copies(state: CollectionState) -> list[Copy]:
    """Return the copies whose file or page is gone."""
    job = state.job
    copies = Copy.objects.filter(
        in_reach(state), collection=job.collection, created__lte=job.created
    )
    return [copy for copy in copies if state.is_gone(copy.origin)]


def in_reach(state: CollectionState) -> Q:
    """Return the condition that the job, by what it lists, could tell that an origin is gone."""
    inside = Q(origin__in=state.vanished_pages)
    for folder in state.job.options.get("folders", []):
        inside |= Q(origin__startswith=f"{folder}/")
    return inside


def copies_by_document(documents: Iterable[Document]) -> dict[str, Copy]:
    """Return a copy of the same bytes for each document that has one, by the document's id."""
    copies = Copy.objects.filter(document__in=documents, sha1=F("document__sha1"))
    return {copy.document_id: copy for copy in copies.order_by("-source")}


def promote_copies(pipeline: Pipeline) -> None:
    """Make documents of the copies of what changed: their files still say what it said before."""
    lease, encoder, prepare = pipeline.lease, pipeline.encoder, pipeline.preparer.prepare
    collection = lease.job.collection
    stale = Copy.objects.filter(collection=collection).exclude(sha1=F("document__sha1"))
    for old_copy in stale.select_related("document").order_by("source"):
        try:
            new_draft = draft_of_copy(old_copy, prepare, questions_of(lease.job))
        except Unreadable:
            old_copy.delete()
            continue
        vectors = encoder.encode(new_draft.embedding_texts(), [old_copy.document.source])
        with transaction.atomic():
            lease.progress()
            # A third of the same bytes is now a copy of the second.
            if store(collection, new_draft, vectors) != "duplicate":
                old_copy.delete()


def draft_of_copy(copy: Copy, prepare: Prepare, questions: frozenset[str]) -> Draft:
    """Return what the document said when it was the same as the copy. Raises Unreadable."""
    former = copy.document.versions.filter(sha1=copy.sha1).first()
    # No version is kept of a change that leaves the text as it is.
    source = former or copy.document
    page = Page(source.content, title=source.title)
    sheet = Sheet(copy.origin, copy.source, copy.sha1, page)
    by_rules = draft(sheet, copy.origin.split("/")[1:-1], prepare)
    return draw_graph(describe_by_models(by_rules, questions))
