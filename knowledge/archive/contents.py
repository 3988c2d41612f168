"""Contents: an archive's documents, each with its versions and vectors."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from knowledge.archive import records
from knowledge.archive.errors import UnusableArchive
from knowledge.archive.opening import Archive, Progress, Rows
from knowledge.archive.records import (
    LEVELS,
    Counts,
    DocumentRecord,
    Level,
    QuestionRecord,
    VersionRecord,
)

State = tuple[int, str]  # a document's version, and the SHA-1 of the bytes it was read from
Matrices = dict[Level, NDArray[np.float16]]


@dataclass(frozen=True)
class Entry:
    """A document as the archive has it."""

    document: DocumentRecord
    versions: list[VersionRecord]
    vectors: dict[str, Matrices]  # by model

    @property
    def state(self) -> State:
        """What tells it from the same document at another time."""
        return self.document.version, self.document.sha1


@dataclass
class Inventory:
    """What all documents of an archive come to."""

    states: dict[str, State] = field(default_factory=dict)  # by source
    embedded: Counter[str] = field(default_factory=Counter)  # model → documents it has vectors of


def entries(archive: Archive) -> Iterator[Entry]:
    """Yield the documents in their order, one in memory at a time. Raises UnusableArchive."""
    with ExitStack() as stack:
        models = [
            {level: stack.enter_context(archive.rows(place, level)) for level in LEVELS}
            for place in range(len(archive.manifest.models))
        ]
        for document, versions in paired(archive):
            if any(place >= len(models) for place in document.models):
                raise UnusableArchive(f"{document.source!r} names a model that is not there.")
            vectors = {
                archive.manifest.models[place].name: taken(document, models[place])
                for place in sorted(document.models)
            }
            yield Entry(document, versions, vectors)
        if any(rows.left for levels in models for rows in levels.values()):
            raise UnusableArchive("It holds vectors of nothing that is in it.")


def taken(document: DocumentRecord, levels: dict[Level, Rows]) -> Matrices:
    """Return the document's vectors of one model."""
    return {level: rows.take(document.rows(level)) for level, rows in levels.items()}


def paired(archive: Archive) -> Iterator[tuple[DocumentRecord, list[VersionRecord]]]:
    """Yield each document with its former versions. Raises UnusableArchive."""
    lines = archive.lines(records.VERSIONS, VersionRecord)
    groups = groupby(lines, key=lambda version: version.document)
    source, group = next(groups, (None, iter(())))
    for document in archive.lines(records.DOCUMENTS, DocumentRecord):
        if document.source != source:
            yield document, []
            continue
        yield document, list(group)
        source, group = next(groups, (None, iter(())))
    if source is not None:
        raise UnusableArchive(f"It holds versions of {source!r}, which is not in it.")


def examine(archive: Archive, progress: Progress) -> Inventory:
    """Go through everything once, and keep what can be compared. Raises UnusableArchive."""
    inventory = Inventory()
    found = Counter[str](calibrations=archive.manifest.counts.calibrations)
    copies = set[str]()
    for done, entry in enumerate(entries(archive), start=1):
        progress(done, archive.manifest.counts.documents)
        document = entry.document
        sources = [copy.source for copy in document.copies]
        versions = [version.number for version in entry.versions]
        if document.source in inventory.states or repeated(versions):
            raise UnusableArchive(f"It holds {document.source!r} or a version of it twice.")
        if repeated(sources) or not copies.isdisjoint(sources):
            raise UnusableArchive(f"It holds a copy of {document.source!r} twice.")
        copies.update(sources)
        inventory.states[document.source] = entry.state
        inventory.embedded.update(entry.vectors.keys())
        found.update(
            documents=1,
            versions=len(entry.versions),
            sections=len(document.sections),
            chunks=len(document.chunks),
            entities_named=document.names,
            relations=len(document.relations),
        )
    found["questions"] = sum(1 for _ in archive.lines(records.QUESTIONS, QuestionRecord))
    if Counts(**found) != archive.manifest.counts:
        raise UnusableArchive("It holds more or less than its manifest says.")
    return inventory


def repeated(things: Sequence[Hashable]) -> bool:
    """Tell whether something is there twice."""
    return len({*things}) < len(things)
