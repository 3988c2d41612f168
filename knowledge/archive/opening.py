"""Opening: an archive as it is read, nothing in it believed before it was checked."""

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, TypeVar, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from django.conf import settings
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import ValidationError

from knowledge.archive import records
from knowledge.archive.errors import UnusableArchive
from knowledge.archive.packing import HALF
from knowledge.archive.records import FORMAT, READABLE, Manifest, MemberRecord, Record

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
        self.manifest = understood(self.start(records.MANIFEST))

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
        known = {records.COLLECTION, records.DOCUMENTS, records.VERSIONS, records.QUESTIONS}
        names = sorted(self.file.namelist())
        if names != sorted([records.MANIFEST, *expected]) or expected.keys() != (
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
    def rows(self, place: int, level: records.Level) -> Iterator["Rows"]:
        """Open a member of vectors. Raises UnusableArchive."""
        name = records.matrix(place, level)
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
    return validated(Manifest, content, records.MANIFEST)


def validated(kind: type[Kind], content: bytes, place: str) -> Kind:
    """Return the record. Raises UnusableArchive, saying which field is wrong and why."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UnusableArchive(f"{place}: {where or 'it'}: {first['msg']}") from error
