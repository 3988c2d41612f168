"""Container: an archive as a file, with a digest for each member; nothing in it is believed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import file_digest, sha256
from io import BufferedReader, BytesIO, RawIOBase
from itertools import groupby
from pathlib import Path
from struct import error as StructError
from typing import IO, TypeVar, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

import numpy as np
from django.conf import settings
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import ValidationError

from knowledge.archive import contents
from knowledge.archive.contents import HALF, LEVELS, Entry, Level, UnusableArchive

# The earliest a zip can say: the same rows give the same bytes whenever they are exported.
EPOCH = (1980, 1, 1, 0, 0, 0)
SMALL_BYTES = 16 * 1024 * 1024  # of a member that is read whole
# Rows of text pack twenty to one; deflate reaches a thousand to one, on nothing but repetition.
RATIO = 200
# A document's text and that of its chunks, with room for escapes.
LINE_PER_TEXT = 4
# What zipfile raises over damaged bytes, beside its own error.
DAMAGED = (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError,
           StructError, ZlibError)  # fmt: skip

Kind = TypeVar("Kind", bound=contents.Record)
Progress = Callable[[str, int, int], None]  # told what is under way, how much of it, of how much


class ArchiveWriter:
    """An archive being written, a member after the other."""

    def __init__(self, file: ZipFile) -> None:
        self.file = file
        self.members: dict[str, contents.Member] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a member, piece by piece."""
        info = ZipInfo(name, EPOCH)
        info.compress_type = ZIP_STORED if name.endswith(".npy") else ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        digest, size = sha256(), 0
        # Nobody knows how large it will be, and only the longer header has room for 4 GB.
        with self.file.open(info, "w", force_zip64=True) as member:
            for piece in pieces:
                member.write(piece)
                digest.update(piece)
                size += len(piece)
        self.members[name] = contents.Member(bytes=size, sha256=digest.hexdigest())


def matrix_header(size: int, columns: int) -> bytes:
    """Return what a `.npy` file begins with that has so many bytes of vectors."""
    header = BytesIO()
    shape = (size // (columns * HALF.itemsize), columns)
    npy.write_array_header_1_0(header, {"descr": HALF.str, "fortran_order": False, "shape": shape})
    return header.getvalue()


@contextmanager
def opened(path: Path) -> Iterator["Archive"]:
    """Open the archive at `path`. Raises UnusableArchive."""
    try:
        file = ZipFile(path)
    except FileNotFoundError as error:
        raise UnusableArchive("There is no such file.") from error
    except DAMAGED as error:
        raise UnusableArchive(f"It is no Docent archive: {error}") from error
    with file:
        yield Archive(file)


class Archive:
    """An open archive with a manifest that can be understood. All of it raises UnusableArchive."""

    def __init__(self, file: ZipFile) -> None:
        self.file = file
        self.manifest = self.record(contents.Manifest, contents.MANIFEST, "Its manifest")

    @contextmanager
    def member(self, name: str) -> Iterator["BufferedReader[RawIOBase]"]:
        """Open a member for reading."""
        try:
            # Line by line, zipfile alone is slow.
            with self.file.open(name) as raw, BufferedReader(cast("RawIOBase", raw)) as member:
                yield member
        except KeyError as error:
            raise UnusableArchive(f"There is no {name} in it: it is no Docent archive.") from error
        except DAMAGED as error:
            raise UnusableArchive(f"{name} is damaged: {error}") from error

    def record(self, kind: type[Kind], name: str, called: str = "") -> Kind:
        """Return the record that a small member is; `called` is what errors call it."""
        with self.member(name) as member:
            content = member.read(SMALL_BYTES + 1)
        if len(content) > SMALL_BYTES:
            raise UnusableArchive(f"{name} is larger than {SMALL_BYTES:,} bytes.")
        return parsed(kind, content, called or name)

    def lines(self, name: str, kind: type[Kind]) -> Iterator[Kind]:
        """Yield the records of a member, one in memory at a time."""
        longest = LINE_PER_TEXT * settings.PARSE_MAX_EXPANDED_BYTES
        with self.member(name) as member:
            lines = iter(lambda: member.readline(longest + 1), b"")
            for number, line in enumerate(lines, start=1):
                place = f"{name}, line {number}"
                if len(line) > longest:
                    raise UnusableArchive(f"{place}: it is longer than {longest:,} bytes.")
                yield parsed(kind, line, place)

    @contextmanager
    def matrix(self, place: int, level: Level) -> Iterator["Matrix"]:
        """Open the vectors that a model has of a level."""
        name = contents.matrix_name(place, level)
        with self.member(name) as member:
            yield Matrix(name, member, self.manifest.models[place].dimensions)

    def documents(self) -> Iterator[tuple[contents.Document, list[contents.Version]]]:
        """Yield each document with its former versions."""
        lines = self.lines(contents.VERSIONS, contents.Version)
        groups = groupby(lines, key=lambda version: version.document)
        source, versions = next(groups, (None, iter(())))
        for document in self.lines(contents.DOCUMENTS, contents.Document):
            if document.source == source:
                yield document, list(versions)
                source, versions = next(groups, (None, iter(())))
            else:
                yield document, []
        if source is not None:
            raise UnusableArchive(f"It holds versions of {source!r}, which is not in it.")

    def entries(self) -> Iterator[Entry]:
        """Yield the documents in their order with their vectors, one in memory at a time."""
        models = self.manifest.models
        with ExitStack() as stack:
            matrices = [
                {level: stack.enter_context(self.matrix(place, level)) for level in LEVELS}
                for place in range(len(models))
            ]
            for document, versions in self.documents():
                if any(place >= len(models) for place in document.models):
                    raise UnusableArchive(f"{document.source!r} names a model that is not there.")
                vectors = {
                    models[place].name: {
                        level: matrix.take(document.rows(level))
                        for level, matrix in matrices[place].items()
                    }
                    for place in document.models
                }
                yield Entry(document, versions, vectors)
            if any(matrix.left for levels in matrices for matrix in levels.values()):
                raise UnusableArchive("It holds vectors of nothing that is in it.")

    def check(self, progress: Progress) -> None:
        """Compare every member with the manifest."""
        members = self.manifest.members
        expected = {*contents.TEXTS, *contents.matrix_names(self.manifest.models)}
        names = sorted(self.file.namelist())
        if names != sorted([contents.MANIFEST, *members]) or members.keys() != expected:
            raise UnusableArchive("Its members are not those its manifest names.")
        self.check_packing()
        total, done = sum(member.bytes for member in members.values()), 0
        for name, member in members.items():
            with self.member(name) as file:
                digest = file_digest(file, "sha256").hexdigest()
            if (self.file.getinfo(name).file_size, digest) != (member.bytes, member.sha256):
                raise UnusableArchive(f"{name} is not as it was exported: its SHA-256 differs.")
            done += member.bytes
            progress("checking", done, total)

    def check_packing(self) -> None:
        """Refuse an archive that would expand out of all proportion."""
        infos = self.file.infolist()
        unpacked = sum(info.file_size for info in infos)
        packed = sum(info.compress_size for info in infos)
        if unpacked > max(settings.PARSE_MAX_EXPANDED_BYTES, RATIO * packed):
            raise UnusableArchive(f"It unpacks to more than {RATIO} times its size.")
        if any(info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for info in infos):
            raise UnusableArchive("It is packed by a method other than deflate.")


class Matrix:
    """Vectors in their order."""

    def __init__(self, name: str, member: IO[bytes], columns: int) -> None:
        self.name, self.member, self.columns = name, member, columns
        if npy.read_magic(member) != (1, 0):
            raise UnusableArchive(f"{name} is no matrix of NumPy's format 1.0.")
        shape, fortran, kind = npy.read_array_header_1_0(member)
        if shape[1:] != (columns,) or fortran or kind != HALF:
            raise UnusableArchive(f"{name} is no matrix of half precision and {columns} columns.")
        self.left = shape[0]

    def take(self, rows: int) -> NDArray[np.float16]:
        """Return the next vectors: float16, (rows, columns). Raises UnusableArchive."""
        content = self.member.read(rows * self.columns * HALF.itemsize)
        self.left -= rows
        if self.left < 0 or len(content) != rows * self.columns * HALF.itemsize:
            raise UnusableArchive(f"{self.name} holds fewer vectors than there are parts.")
        vectors = np.frombuffer(content, HALF).reshape(rows, self.columns)
        if not np.isfinite(vectors).all():
            raise UnusableArchive(f"{self.name} holds what is no number.")
        return vectors


def parsed(kind: type[Kind], content: bytes, place: str) -> Kind:
    """Return the record. Raises UnusableArchive, saying which field is wrong and why."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        where = f"{place}: {field}" if field else f"{place} cannot be read"
        raise UnusableArchive(f"{where}: {reason}") from error
