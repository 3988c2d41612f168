"""Schedule: reads the sources that collections follow again, each time by an ingest of its own.

A run is a job like any other: held under a lease, gone on with when its worker dies, with what
changed in its report. No source has two open jobs.
"""

import json
from dataclasses import asdict, replace
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.timezone import now

from knowledge.errors import KnowledgeError, Unreadable
from knowledge.ingestion.jobs import OPEN
from knowledge.ingestion.plan import add_items, get_or_create_collection
from knowledge.ingestion.repository_files import Wanted
from knowledge.models import Ingest, Item, Source
from knowledge.web.fetch import allowed_url
from knowledge.web.git_repository import BRANCH, Repository, check_address
from knowledge.web.sitemap import ENDINGS

MOST_PATTERNS = 50


class InvalidSource(KnowledgeError):
    """What was named cannot be followed."""

    code = "invalid_source"


class KnownSource(InvalidSource):
    """The collection follows that already."""

    code = "known_source"


def add(
    collection: str,
    address: str,
    *,
    branch: str = "",
    folder: str = "",
    patterns: list[str] | None = None,
    every: timedelta | None = None,
    is_local: bool = False,
) -> Source:
    """Follow a repository or a sitemap in the collection of that name, made when missing.

    An address that ends like a sitemap's (.xml, .xml.gz) is one, unless a branch, a folder or
    patterns are named; any other is a repository's. `is_local`: named at the command line, where it
    may be a path or lie behind ssh. The first run is due at once. Raises InvalidSource, KnownSource
    where the collection follows it already, InvalidCollectionName.
    """
    is_repository = bool(branch or folder or patterns) or not is_sitemap(address)
    kind = Source.Kind.GIT if is_repository else Source.Kind.SITEMAP
    source = Source(
        kind=kind,
        address=address.strip(),
        branch=branch.strip(),
        folder=folder.strip().strip("/"),
        patterns=patterns or [],
        is_local=is_local,
    )
    if every is not None:
        source.every = every
    check(source)
    source.collection = get_or_create_collection(collection)
    try:
        source.full_clean(exclude=["collection"], validate_constraints=False)
    except ValidationError as error:
        raise InvalidSource(" ".join(error.messages)) from error
    try:
        source.validate_constraints()
    except ValidationError as error:
        raise KnownSource(f"{source.collection.name} follows {source} already.") from error
    source.save(force_insert=True)
    return source


def is_sitemap(address: str) -> bool:
    """Tell whether an address is that of a sitemap, by its end."""
    return address.startswith(("http://", "https://")) and address.lower().endswith(ENDINGS)


def check(source: Source) -> None:
    """Raise InvalidSource when it could never be read."""
    try:
        if source.kind == Source.Kind.SITEMAP:
            allowed_url(source.address)
        else:
            check_address(source.address, is_local=source.is_local)
    except Unreadable as error:
        raise InvalidSource(f"{source.address}: {error}.") from error
    if source.branch and not BRANCH.fullmatch(source.branch):
        raise InvalidSource(f"{source.branch!r} is no name of a branch.")
    if ".." in source.folder.split("/"):
        raise InvalidSource("The folder has to lie within the repository.")
    if len(source.patterns) > MOST_PATTERNS:
        raise InvalidSource(f"There may be {MOST_PATTERNS} patterns at most.")


def plan_due() -> list[Ingest]:
    """Make the jobs of the sources that are due and have no open job."""
    due = Source.objects.filter(paused=False, due__lte=now())
    planned = (plan_run(source) for source in due.exclude(runs__status__in=OPEN))
    return [job for job in planned if job is not None]


def plan_run(source: Source, *, is_whole: bool = False) -> Ingest | None:
    """Make the job that reads a source again, and set when it is due next; None when one is open.

    With `is_whole` also what its server calls unchanged is read. Nobody is told of the job.
    """
    with transaction.atomic():
        # Two who look at the same moment make one job.
        locked = Source.objects.select_for_update().select_related("collection").get(pk=source.pk)
        if locked.runs.filter(status__in=OPEN).exists():
            return None
        Source.objects.filter(pk=locked.pk).update(due=now() + locked.every)
        job = Ingest.objects.create(
            collection=locked.collection,
            name=str(locked)[:1000],
            source=locked,
            options={"asked": [], "whole": is_whole},
        )
        add_items(job, [item_of(locked, is_whole=is_whole)])
    return job


def item_of(source: Source, *, is_whole: bool) -> Item:
    """Return what a run begins with: the sitemap, or the repository with what is wanted of it."""
    if source.kind == Source.Kind.SITEMAP:
        return Item(kind=Item.Kind.URL, origin=source.address, location=source.address)
    repository = Repository(source.address, source.branch, source.folder, source.is_local)
    wanted = Wanted(repository, source.patterns)
    if not is_whole:
        wanted = replace(wanted, known=commit_of(source, wanted.root))
    return Item(kind=Item.Kind.GIT, origin=wanted.root[:1000], location=json.dumps(asdict(wanted)))


def commit_of(source: Source, root: str) -> str:
    """Return the commit that was read whole the last time; nothing where it has to be read again.

    That is where documents of it are gone, or files could not be read.
    """
    last = source.runs.filter(status=Ingest.Status.DONE).order_by("-created").first()
    if last is None or last.items.filter(status=Item.Status.SKIPPED).exists():
        return ""
    item = last.items.filter(kind=Item.Kind.GIT).first()
    documents = source.collection.documents.filter(origin__startswith=f"{root}/")
    return item.sha1 if item is not None and documents.exists() else ""
