"""Roots: tells a folder that moved from another one of the same name."""

import os
from pathlib import Path

from knowledge.errors import NothingToIngest
from knowledge.ingestion.files import Findings
from knowledge.models import Collection, Ingest

# A folder that moved still holds most of what it held.
SHARE = 0.5


def refuse_strangers(collection: Collection, findings: Findings, *, keep_missing: bool) -> None:
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
            and not is_alike(collection, name, findings)
        ):
            raise NothingToIngest(
                f"{path} has the name of a folder in the collection {collection.name!r} "
                f"({former}, gone from there) but holds less than half of its documents, so it "
                "may be another one. Rename it, ingest it into a collection of its own, or use "
                "--keep-missing to add to what is there."
            )


def former_root(collection: Collection, name: str) -> str | None:
    """Return where the root of that name lay when it was last ingested; None when never."""
    jobs = Ingest.objects.filter(collection=collection, options__roots__has_key=name)
    options = jobs.order_by("-created").values_list("options", flat=True).first()
    return options["roots"][name] if options else None


def is_alike(collection: Collection, folder: str, findings: Findings) -> bool:
    """Tell whether the listing still holds half of the folder's documents."""
    held = collection.documents.filter(origin__startswith=f"{folder}/")
    origins = set(held.values_list("origin", flat=True))
    found = {file.origin for file in findings.files}
    archives = {origin for origin in found if Path(origin).suffix == ".zip"}
    there = [
        origin
        for origin in origins
        if origin in found or any(origin.startswith(f"{archive}/") for archive in archives)
    ]
    return len(there) >= SHARE * len(origins)
