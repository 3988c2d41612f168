"""Plan: makes a job of what somebody wants to be ingested."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q, QuerySet

from knowledge.embedding import registry
from knowledge.errors import InvalidCollectionName, NameTaken, NothingToIngest
from knowledge.ingestion.drafts import digest
from knowledge.ingestion.jobs import OPEN
from knowledge.ingestion.sources import WEB, Findings, find
from knowledge.models import COLLECTION_NAME, Collection, Document, Ingest, Item
from knowledge.postgres_text import storable
from knowledge.preparation import title_from_name
from knowledge.web.fetch import allowed_url

NAMED = 3  # things a job's name holds
LONGEST = 1000  # characters of an origin
AT_ONCE = 50  # rows, each with as much as an upload may hold


def plan(
    collection: str,
    *,
    paths: Iterable[Path] = (),
    urls: Iterable[str] = (),
    uploads: Iterable[tuple[str, bytes]] = (),
    force: bool = False,
    keep_missing: bool = False,
    describe: bool = False,
    replace: bool = True,
) -> Ingest:
    """Make a job that brings the collection of that name, made when missing, to what these say.

    Folders are listed at once; archives and sitemaps are by whoever `run`s the job, so nothing is
    asked of the network here. `uploads` are file names with their bytes. With `describe` a model is
    asked about the documents also where no setting but GEN_MODEL names it. Nobody is told of the
    job: call `jobs.ring`, or `run` it. The same paths and URLs asked for again while their job is
    open return that job. With `replace` an upload may take the place of what another file of its
    name said.

    Raises NameTaken, InvalidCollectionName, NothingToIngest and Unreadable (an address nobody may
    ask for).
    """
    return plan_findings(
        collection,
        find(paths),
        urls=urls,
        uploads=uploads,
        force=force,
        keep_missing=keep_missing,
        describe=describe,
        replace=replace,
        join=True,
    )


def plan_findings(
    collection: str,
    findings: Findings,
    *,
    urls: Iterable[str] = (),
    uploads: Iterable[tuple[str, bytes]] = (),
    force: bool = False,
    keep_missing: bool = False,
    describe: bool = False,
    replace: bool = True,
    join: bool = False,
) -> Ingest:
    """Make the job of files that were found already; with `join`, an open one may do."""
    addresses = [str(allowed_url(url)) for url in dict.fromkeys(urls)]
    files_received = list(uploads)
    names = [*findings.roots, *addresses, *(name for name, _ in files_received)]
    refuse_duplicates(names)
    target = get_or_create_collection(collection)
    refuse_replaced_roots(target, findings, keep_missing=keep_missing)
    if not replace:
        refuse_replaced_uploads(target, findings, files_received)
    request = {
        "asked": [*findings.roots.values(), *addresses],
        "force": force,
        "keep_missing": keep_missing,
        "describe": describe,
    }
    if join and not files_received and (open_job := same_job(target, request)):
        return open_job
    options = request | {
        "roots": findings.roots,
        "folders": findings.folders,
        "unread": [asdict(problem) for problem in findings.unread],
        "ignored": dict(findings.ignored),
    }
    items = [*file_items(findings), *url_items(addresses), *upload_items(files_received)]
    return create_job(target, job_name(names), options, items)


def reingest(document: Document) -> Ingest:
    """Make a job that takes a document in anew, changed or not.

    It is read again from its file or address when one is known; an upload's bytes are gone, so
    its text is chunked, described and embedded anew.
    """
    return create_job(
        document.collection, document.source, {"force": True}, [item_of(document)]
    )  # fmt: skip


def reingest_all(documents: Iterable[Document]) -> list[Ingest]:
    """Make a job for each collection that takes documents of it in anew, as `reingest` does."""
    by_collection: dict[Collection, list[Document]] = {}
    for document in documents:
        by_collection.setdefault(document.collection, []).append(document)
    return [
        create_job(
            collection,
            job_name([each.source for each in chosen]),
            {"force": True},
            # A file that holds several documents is read once.
            {each.origin: item_of(each) for each in chosen}.values(),
        )
        for collection, chosen in by_collection.items()
    ]


def item_of(document: Document) -> Item:
    """Return the item that reads a document again, or takes what is stored of it."""
    items = Item.objects.filter(
        ingest__collection=document.collection_id, origin=document.origin
    ).exclude(kind=Item.Kind.UPLOAD)
    item = items.order_by("-pk").first()
    if item is None or item.kind == Item.Kind.STORED:
        item = Item(kind=Item.Kind.STORED, location=document.pk)
    return Item(kind=item.kind, origin=document.origin, location=item.location)


def create_job(
    collection: Collection, name: str, options: dict[str, Any], items: Iterable[Item]
) -> Ingest:
    """Insert a job with its items."""
    with transaction.atomic():
        job = Ingest.objects.create(collection=collection, name=name, options=options)
        add_items(job, items)
    return job


def add_items(job: Ingest, items: Iterable[Item]) -> int:
    """Append items to a job, a few at a time as some hold their bytes; return how many."""
    last = job.items.aggregate(last=Max("number"))["last"] or 0
    count, rest = 0, iter(items)
    while batch := list(islice(rest, AT_ONCE)):
        for item in batch:
            count += 1
            item.ingest, item.number = job, last + count
        Item.objects.bulk_create(batch)
    return count


def file_items(findings: Findings) -> list[Item]:
    """Return an item per file that was found."""
    items = [
        Item(kind=Item.Kind.FILE, origin=file.origin, location=str(file.path))
        for file in findings.files
    ]
    for item in items:
        if len(item.origin) > LONGEST:
            item.origin, item.status = item.origin[:LONGEST], Item.Status.SKIPPED
            item.reason = f"its path is longer than {LONGEST} characters"
    return items


def url_items(addresses: Iterable[str]) -> list[Item]:
    """Return an item per address."""
    return [
        Item(kind=Item.Kind.URL, origin=address[:LONGEST], location=address)
        for address in addresses
    ]


def upload_items(uploads: Iterable[tuple[str, bytes]]) -> list[Item]:
    """Return an item per upload."""
    return [
        Item(kind=Item.Kind.UPLOAD, origin=storable(name)[:LONGEST], body=body)
        for name, body in uploads
    ]


def same_job(collection: Collection, request: dict[str, Any]) -> Ingest | None:
    """Return the open job that does the same; None when there is none."""
    jobs = Ingest.objects.filter(collection=collection, status__in=OPEN, cancelling=False)
    return jobs.filter(options__contains=request).order_by("created").first()


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise NothingToIngest when there is nothing, or twice the same name."""
    if not names:
        raise NothingToIngest("Nothing to ingest was named.")
    for name in names:
        if names.count(name) > 1:
            raise NothingToIngest(f"Two files are called {name!r}: documents need different names.")


def get_or_create_collection(name: str) -> Collection:
    """Return the collection of that name, made when missing.

    Raises InvalidCollectionName, and UnknownModel when EMBEDDING_MODEL names none.
    """
    if not re.match(COLLECTION_NAME, name):
        raise InvalidCollectionName(name)
    collection, _ = Collection.objects.get_or_create(
        name=name,
        defaults={
            "title": title_from_name(name),
            "embedding_model": registry.full_name(settings.EMBEDDING_MODEL),
        },
    )
    return collection


def job_name(names: Sequence[str]) -> str:
    """Return what a job is called: the first things asked for."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (", ".join(names[:NAMED]) + more)[:1000]


def split_paths_and_urls(words: Iterable[str]) -> tuple[list[Path], list[str]]:
    """Return the paths and the web addresses among what somebody typed."""
    distinct = list(dict.fromkeys(words))
    return [Path(word) for word in distinct if not WEB.match(word)], [
        word for word in distinct if WEB.match(word)
    ]


# A folder that moved still holds most of what it held.
SHARE = 0.5


def refuse_replaced_roots(
    collection: Collection, findings: Findings, *, keep_missing: bool
) -> None:
    """Raise NothingToIngest when a folder or file would take the place of another of its name.

    Documents are known by the name of the root and the path within it, so that a folder may move.
    """
    for name, path in findings.roots.items():
        former = former_root(collection, name)
        if former in {None, path}:
            continue
        if os.path.exists(str(former)):
            raise NothingToIngest(
                f"{path} has the name of {former}, which is in the collection "
                f"{collection.name!r} already: each would replace the other's documents. "
                "Rename one, or ingest it into a collection of its own."
            )
        if (
            name in findings.folders
            and not keep_missing
            and not holds_most_documents(collection, name, findings)
        ):
            raise NothingToIngest(
                f"{path} has the name of a folder in the collection {collection.name!r} "
                f"({former}, gone from there) but holds less than half of its documents, so it "
                "may be another one. Rename it, ingest it into a collection of its own, or use "
                "--keep-missing to add to what is there."
            )


def refuse_replaced_uploads(
    collection: Collection, findings: Findings, files: Iterable[tuple[str, bytes]]
) -> None:
    """Raise NameTaken when a file would take the place of another one of its name.

    Who uploads may not know what others have; the same bytes again are no other file. What was
    taken in from a path is known by where it lay, and `refuse_replaced_roots` looks at that.
    """
    if taken := [name for name, body in files if is_other_file(collection, name, digest(body))]:
        raise NameTaken(taken, collection.name, "Send `replace` as true to replace them")
    uploaded = [
        name
        for name in findings.roots
        if is_taken(collection, name)
        and former_root(collection, name) is None
        and collection_items(collection, name).filter(kind=Item.Kind.UPLOAD).exists()
    ]
    if uploaded:
        raise NameTaken(uploaded, collection.name, "Use --replace to replace what was uploaded")


def is_other_file(collection: Collection, name: str, sha1: str) -> bool:
    """Tell whether documents were made, or are being made, of other bytes of that name."""
    items = collection_items(collection, storable(name)[:LONGEST])
    waiting = items.filter(status=Item.Status.WAITING, ingest__status__in=OPEN)
    if any(digest(bytes(body or b"")) != sha1 for body in waiting.values_list("body", flat=True)):
        return True
    latest = items.exclude(status=Item.Status.WAITING).order_by("-pk").first()
    is_same = latest is not None and latest.sha1 == sha1
    return is_taken(collection, name) and not is_same


def is_taken(collection: Collection, name: str) -> bool:
    """Tell whether documents come from a file, archive or folder of that name."""
    return collection.documents.filter(Q(origin=name) | Q(origin__startswith=f"{name}/")).exists()


def collection_items(collection: Collection, name: str) -> QuerySet[Item]:
    """Return the items of all jobs of the collection of that name."""
    return Item.objects.filter(ingest__collection=collection, origin=name)


def former_root(collection: Collection, name: str) -> str | None:
    """Return where the root of that name lay when it was last ingested; None when never."""
    jobs = Ingest.objects.filter(collection=collection, options__roots__has_key=name)
    options = jobs.order_by("-created").values_list("options", flat=True).first()
    return options["roots"][name] if options else None


def holds_most_documents(collection: Collection, folder: str, findings: Findings) -> bool:
    """Tell whether the listing still holds half of the folder's documents."""
    documents = collection.documents.filter(origin__startswith=f"{folder}/")
    origins = set(documents.values_list("origin", flat=True))
    listed = {file.origin for file in findings.files}
    archives = {origin for origin in listed if Path(origin).suffix == ".zip"}
    remaining = [
        origin
        for origin in origins
        if origin in listed or any(origin.startswith(f"{archive}/") for archive in archives)
    ]
    return len(remaining) >= SHARE * len(origins)
