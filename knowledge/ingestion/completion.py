"""Running: a job from where it stands to its end."""

import uuid
from collections.abc import Iterable

from django.db import transaction
from django.db.models import F, Q

from knowledge.errors import Unreadable
from knowledge.identifiers import LOCAL_MODEL
from knowledge.ingestion.drafts import Draft, Sheet, described, draft, drawn
from knowledge.ingestion.job_lease import Hold, held
from knowledge.ingestion.job_vectors import Encoder
from knowledge.ingestion.jobs import Status, end
from knowledge.ingestion.pipeline import Pipeline, Watch
from knowledge.ingestion.plan import plan_findings
from knowledge.ingestion.removal import delete
from knowledge.ingestion.report import Report, report
from knowledge.ingestion.retention import tidy
from knowledge.ingestion.sources import Findings
from knowledge.ingestion.state import Known
from knowledge.ingestion.store import move, store, take_turns
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
    with held(ingest_id) as hold:
        if hold is None:
            return None
        pipeline = Pipeline(hold, watch)
        pipeline.work()
        made = close(hold, pipeline.known, pipeline.encoder)
        tidy()
        return made
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


def close(hold: Hold, known: Known, encoder: Encoder) -> Report:
    """Follow files that are gone, and end the job. Every step may be repeated."""
    if not hold.job.options.get("keep_missing"):
        follow(hold, known)
    bequeath(hold, encoder)
    index(hold, encoder)
    made = report(hold.job)
    made.removed = hold.job.report.get("removed", 0)
    made.receipt = hold.job.report.get("receipt", "")
    with transaction.atomic():
        hold.fence()
        if made.is_useful:
            end(hold.mine, Status.DONE, report=made.as_json())
        else:
            reasons = dict.fromkeys(problem.reason for problem in made.skipped)
            said = "; ".join(reasons) or "There was nothing to ingest."
            end(hold.mine, Status.FAILED, report=made.as_json(), error=said[:2000])
    return made


def index(hold: Hold, encoder: Encoder) -> None:
    """Bring up to date what searches of the collection go by.

    Before the job ends: nobody would do it for a worker that dies after that.
    """
    postings.refresh(hold.job.collection_id)
    if encoder.model.name != LOCAL_MODEL and report(hold.job).is_useful:
        vector_indexes.ensure(encoder.model.name, encoder.model.dimensions)


def follow(hold: Hold, known: Known) -> None:
    """Delete the documents whose file, entry or page is gone; one that has a copy moves there."""
    job = hold.job
    with transaction.atomic():
        hold.fence()
        take_turns(job.collection)
        Copy.objects.filter(pk__in=[copy.pk for copy in lost_copies(known)]).delete()
        going = lost_documents(known)
        homes = homes_of(going)
        removed = [each for each in going if each.pk not in homes]
        if removed:
            receipt = delete(removed, by=f"ingest {job.pk}", reason=REASON)
            count = job.report.get("removed", 0) + len(removed)
            job.report = {"removed": count, "receipt": str(receipt.pk)}
            Ingest.objects.filter(pk=job.pk).update(report=job.report)
        move([each for each in going if each.pk in homes], homes)
        job.items.exclude(gone=[]).update(gone=[])


def lost_documents(known: Known) -> list[Document]:
    """Return the documents whose file, entry or page is gone, without their texts."""
    job = known.job
    documents = Document.objects.filter(collection=job.collection).defer("content", "summary")
    # A job that is tried again lists the folder as it was: what came later is none of its business.
    listed = documents.filter(in_reach(known), updated__lte=job.created)
    lost = [document for document in listed if known.is_gone(document.origin)]
    for origin, sources in job.items.exclude(gone=[]).values_list("origin", "gone"):
        lost += documents.filter(origin=origin, source__in=sources)
    return list({document.pk: document for document in lost}.values())


def lost_copies(known: Known) -> list[Copy]:
    """Return the copies whose file or page is gone."""
    job = known.job
    copies = Copy.objects.filter(
        in_reach(known), collection=job.collection, created__lte=job.created
    )
    return [copy for copy in copies if known.is_gone(copy.origin)]


def in_reach(known: Known) -> Q:
    """Return the condition that the job, by what it lists, could tell that an origin is gone."""
    inside = Q(origin__in=known.vanished)
    for folder in known.job.options.get("folders", []):
        inside |= Q(origin__startswith=f"{folder}/")
    return inside


def homes_of(documents: Iterable[Document]) -> dict[str, Copy]:
    """Return a copy of the same bytes for each document that has one, by the document's id."""
    copies = Copy.objects.filter(document__in=documents, sha1=F("document__sha1"))
    return {copy.document_id: copy for copy in copies.order_by("-source")}


def bequeath(hold: Hold, encoder: Encoder) -> None:
    """Make documents of the copies of what changed: their files still say what it said before."""
    collection = hold.job.collection
    stale = Copy.objects.filter(collection=collection).exclude(sha1=F("document__sha1"))
    for former in stale.select_related("document").order_by("source"):
        try:
            heir = heir_of(former, encoder.window)
        except Unreadable:
            former.delete()
            continue
        vectors = encoder.encode(heir.embedded(), [former.document.source])
        with transaction.atomic():
            hold.progress()
            # A third of the same bytes is now a copy of the second.
            if store(collection, heir, vectors) != "duplicate":
                former.delete()


def heir_of(copy: Copy, window: int) -> Draft:
    """Return what the document said when it was the same as the copy. Raises Unreadable."""
    former = copy.document.versions.filter(sha1=copy.sha1).first()
    # No version is kept of a change that leaves the text as it is.
    said = former or copy.document
    page = Page(said.content, title=said.title)
    sheet = Sheet(copy.origin, copy.source, copy.sha1, page)
    return drawn(described(draft(sheet, copy.origin.split("/")[1:-1], window=window)))
