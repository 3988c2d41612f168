"""Container: an archive as a file, with a digest for each member; nothing in it is believed."""

import json
import shutil
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from io import BufferedReader, RawIOBase
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self, TypeVar, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from django.conf import settings
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import ValidationError

from knowledge.archive import archive_format
from knowledge.archive.archive_format import (
    FORMAT,
    LEVELS,
    READABLE,
    Counts,
    DocumentRecord,
    Level,
    Manifest,
    MemberRecord,
    QuestionRecord,
    Record,
    UnusableArchive,
    VersionRecord,
)

# The earliest a zip can say: the same rows give the same bytes whenever they are exported.
EPOCH = (1980, 1, 1, 0, 0, 0)
HALF = np.dtype("<f2")


class Hashed:
    """A member that is being written."""

    def __init__(self, target: IO[bytes]) -> None:
        self.target = target
        self.digest = sha256()
        self.size = 0

    def write(self, content: bytes) -> int:
        """Append to the member."""
        self.digest.update(content)
        self.size += len(content)
        return self.target.write(content)


class Packer:
    """An archive being written."""

    def __init__(self, archive: ZipFile) -> None:
        self.archive = archive
        self.members: dict[str, MemberRecord] = {}

    @contextmanager
    def member(self, name: str, *, packed: bool = True) -> Iterator[Hashed]:
        """Open a member for writing; one at a time."""
        info = ZipInfo(name, EPOCH)
        info.compress_type = ZIP_DEFLATED if packed else ZIP_STORED
        info.external_attr = 0o600 << 16
        # Nobody knows how large it will be, and only the longer header has room for 4 GB.
        with self.archive.open(info, "w", force_zip64=True) as target:
            hashed = Hashed(target)
            yield hashed
        self.members[name] = MemberRecord(bytes=hashed.size, sha256=hashed.digest.hexdigest())


class Aside:
    """Bytes for a later member, kept in a nameless file beside the archive."""

    def __init__(self, folder: Path) -> None:
        self.file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def into(self, target: Any) -> None:
        """Copy all of it."""
        self.file.seek(0)
        shutil.copyfileobj(self.file, target, 1024 * 1024)


class Matrix(Aside):
    """Rows of vectors that become a `.npy` file once it is known how many there are."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        super().__init__(folder)
        self.dimensions = dimensions
        self.rows = 0

    def append(self, vectors: NDArray[np.float16]) -> None:
        """Append the rows of a matrix (rows, dimensions)."""
        self.rows += len(vectors)
        self.file.write(np.ascontiguousarray(vectors, dtype=HALF).data)

    def into(self, target: Any) -> None:
        """Write the header, then the rows."""
        shape = (self.rows, self.dimensions)
        header = {"descr": HALF.str, "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(target, header)
        super().into(target)


MANIFEST_BYTES = 16 * 1024 * 1024
PIECE = 1024 * 1024
# Rows of text pack twenty to one; deflate reaches a thousand to one, on nothing but repetition.
RATIO = 200
# A document's text and that of its chunks, with room for escapes.
LINE_PER_TEXT = 4
# What zipfile raises over damaged bytes, beside its own error.
DAMAGED = (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError,
           struct.error, zlib.error)  # fmt: skip

Kind = TypeVar("Kind", bound=Record)
Progress = Callable[[int, int], None]  # told how much is done, of how much


class Archive:
    """An open archive with a manifest that can be understood."""

    def __init__(self, file: ZipFile) -> None:
        self.file = file
        self.manifest = understood(self.start(archive_format.MANIFEST))

    def start(self, name: str) -> bytes:
        """Return a small member. Raises UnusableArchive."""
        with self.opened(name) as member:
            content = member.read(MANIFEST_BYTES + 1)
        if len(content) > MANIFEST_BYTES:
            raise UnusableArchive(f"{name} is larger than {MANIFEST_BYTES:,} bytes.")
        return content

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """Open a member for reading. Raises UnusableArchive, also about what is read of it."""
        try:
            with (
                self.file.open(name) as member,
                BufferedReader(cast("RawIOBase", member)) as read,
            ):
                yield read
        except KeyError as error:
            raise UnusableArchive(f"There is no {name} in it: it is no Docent archive.") from error
        except DAMAGED as error:
            raise UnusableArchive(f"{name} is damaged: {error}") from error

    def check(self, progress: Progress) -> None:
        """Compare every member with the manifest. Raises UnusableArchive."""
        expected = self.manifest.members
        known = {
            archive_format.COLLECTION,
            archive_format.DOCUMENTS,
            archive_format.VERSIONS,
            archive_format.QUESTIONS,
        }
        names = sorted(self.file.namelist())
        if names != sorted([archive_format.MANIFEST, *expected]) or expected.keys() != (
            known | {*self.manifest.matrices()}
        ):
            raise UnusableArchive("Its members are not those its manifest names.")
        self.check_sizes()
        total, done = sum(member.bytes for member in expected.values()), 0
        for name, member in expected.items():
            for size in self.compared(name, member):
                done += size
                progress(done, total)

    def check_sizes(self) -> None:
        """Refuse an archive that would expand out of all proportion. Raises UnusableArchive."""
        infos = self.file.infolist()
        unpacked = sum(info.file_size for info in infos)
        packed = sum(info.compress_size for info in infos)
        if unpacked > max(settings.PARSE_MAX_EXPANDED_BYTES, RATIO * packed):
            raise UnusableArchive(f"It unpacks to more than {RATIO} times its size.")
        if any(info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for info in infos):
            raise UnusableArchive("It is packed by a method other than deflate.")

    def compared(self, name: str, expected: MemberRecord) -> Iterator[int]:
        """Yield how many bytes were read, piece by piece. Raises UnusableArchive at the end."""
        digest, size = sha256(), 0
        with self.opened(name) as member:
            while piece := member.read(PIECE):
                digest.update(piece)
                size += len(piece)
                yield len(piece)
        if size != expected.bytes or digest.hexdigest() != expected.sha256:
            raise UnusableArchive(f"{name} is not as it was exported: its SHA-256 differs.")

    def lines(self, name: str, kind: type[Kind]) -> Iterator[Kind]:
        """Yield the records of a member. Raises UnusableArchive, naming the line at fault."""
        longest = LINE_PER_TEXT * settings.PARSE_MAX_EXPANDED_BYTES
        with self.opened(name) as member:
            number = 0
            while content := member.readline(longest + 1):
                number += 1
                if len(content) > longest:
                    raise UnusableArchive(
                        f"{name}, line {number}: it is longer than {longest:,} bytes."
                    )
                yield validated(kind, content, f"{name}, line {number}")

    @contextmanager
    def rows(self, place: int, level: archive_format.Level) -> Iterator["Rows"]:
        """Open a member of vectors. Raises UnusableArchive."""
        name = archive_format.matrix(place, level)
        with self.opened(name) as member:
            yield Rows(name, member, self.manifest.models[place].dimensions)


class Rows:
    """Vectors in their order."""

    def __init__(self, name: str, member: IO[bytes], dimensions: int) -> None:
        self.name = name
        self.member = member
        self.dimensions = dimensions
        if npy.read_magic(member) != (1, 0):
            raise UnusableArchive(f"{name} is no matrix of NumPy's format 1.0.")
        shape, fortran, kind = npy.read_array_header_1_0(member)
        if len(shape) != 2 or shape[1] != dimensions or fortran or kind != HALF:
            raise UnusableArchive(
                f"{name} is no matrix of half precision and {dimensions} columns."
            )
        self.left = shape[0]

    def take(self, count: int) -> NDArray[np.float16]:
        """Return the next vectors: float16, (count, dimensions). Raises UnusableArchive."""
        content = self.member.read(count * self.dimensions * HALF.itemsize)
        vectors = np.frombuffer(content, dtype=HALF)
        self.left -= count
        if self.left < 0 or vectors.size != count * self.dimensions:
            raise UnusableArchive(f"{self.name} holds fewer vectors than there are parts.")
        if not np.isfinite(vectors).all():
            raise UnusableArchive(f"{self.name} holds what is no number.")
        return vectors.reshape(count, self.dimensions)


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open the archive at `path`. Raises UnusableArchive."""
    try:
        file = ZipFile(path)
    except FileNotFoundError as error:
        raise UnusableArchive("There is no such file.") from error
    except DAMAGED as error:
        raise UnusableArchive(f"It is no Docent archive: {error}") from error
    with file:
        yield Archive(file)


def understood(content: bytes) -> Manifest:
    """Return the manifest. Raises UnusableArchive, also for another version of the format."""
    try:
        found = json.loads(content)
    except ValueError as error:
        raise UnusableArchive(f"Its manifest cannot be read: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UnusableArchive("Its manifest is not that of a Docent archive.")
    if found.get("version") not in READABLE:
        raise UnusableArchive(
            f"It is of format version {found.get('version')}, and this Docent reads versions "
            f"{' and '.join(map(str, READABLE))}: import it with a Docent like the one that "
            "exported it."
        )
    return validated(Manifest, content, archive_format.MANIFEST)


def validated(kind: type[Kind], content: bytes, place: str) -> Kind:
    """Return the record. Raises UnusableArchive, saying which field is wrong and why."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UnusableArchive(f"{place}: {where or 'it'}: {first['msg']}") from error


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
    lines = archive.lines(archive_format.VERSIONS, VersionRecord)
    groups = groupby(lines, key=lambda version: version.document)
    source, group = next(groups, (None, iter(())))
    for document in archive.lines(archive_format.DOCUMENTS, DocumentRecord):
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
    found["questions"] = sum(1 for _ in archive.lines(archive_format.QUESTIONS, QuestionRecord))
    if Counts(**found) != archive.manifest.counts:
        raise UnusableArchive("It holds more or less than its manifest says.")
    return inventory


def repeated(things: Sequence[Hashable]) -> bool:
    """Tell whether something is there twice."""
    return len({*things}) < len(things)
