"""Closing: what is left to do once all items of a job are done."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import F, Q

from knowledge import postings
from knowledge.errors import Unreadable
from knowledge.ingestion.drafts import Draft, Sheet, described, draft, drawn
from knowledge.ingestion.encoding import Encoder
from knowledge.ingestion.holding import Hold
from knowledge.ingestion.jobs import Status, end
from knowledge.ingestion.known import Known
from knowledge.ingestion.removal import delete
from knowledge.ingestion.report import Report, report
from knowledge.ingestion.storing import move, store, take_turns
from knowledge.models import Copy, Document, Ingest
from knowledge.names import LOCAL_MODEL
from knowledge.parsing import Page
from knowledge.search import indexes

REASON = "its file, entry or page is gone"


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
        indexes.ensure(encoder.model.name, encoder.model.dimensions)


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
    for copy in stale.select_related("document").order_by("source"):
        try:
            heir = heir_of(copy, encoder.window)
        except Unreadable:
            copy.delete()
            continue
        vectors = encoder.encode(heir.embedded(), [copy.document.source])
        with transaction.atomic():
            hold.progress()
            # A third of the same bytes is now a copy of the second.
            if store(collection, heir, vectors) != "duplicate":
                copy.delete()


def heir_of(copy: Copy, window: int) -> Draft:
    """Return what the document said when it was the same as the copy. Raises Unreadable."""
    former = copy.document.versions.filter(sha1=copy.sha1).first()
    # No version is kept of a change that leaves the text as it is.
    said = former or copy.document
    page = Page(said.content, title=said.title)
    sheet = Sheet(copy.origin, copy.source, copy.sha1, page)
    return drawn(described(draft(sheet, copy.origin.split("/")[1:-1], window=window)))
