"""Packing: an archive being written, each member once and with its digest."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from knowledge.archive.records import MemberRecord

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
