"""Tiny E5: a file of weights as the package packs them, made up, and what a model makes of it."""

import struct
from math import erf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding.bert import DIMENSIONS, EPSILON, HEADS
from knowledge.embedding.e5_file import BLOCK, HEADER, MAGIC, VOCABULARY

Floats = NDArray[np.float32]

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", "a", "b", "ab", "\u2581ab", "\u2581a", "ba"]
SCORES = [0.0, 0.0, 0.0, 0.0, -3.0, -4.0, -4.0, -5.0, -6.0, -5.5, -5.0]
REPLACED = {ord("\n"): " ", 0xFB00: "ff", 7: ""}
WIDTH, PLACES = 64, 16


def rounded(matrix: Floats) -> tuple[bytes, Floats]:
    """A matrix in blocks of four bits, and what is left of it."""
    rows = matrix.reshape(-1, BLOCK)
    scales = (np.abs(rows).max(axis=1, keepdims=True) / 7).astype(np.float16)
    numbers = np.clip(np.rint(rows / scales.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    halves = numbers[:, :16] | (numbers[:, 16:] << 4)
    packed = b"".join(
        scale.tobytes() + half.tobytes() for scale, half in zip(scales, halves, strict=True)
    )
    left = (numbers.astype(np.float32) - 8) * scales.astype(np.float32)
    return packed, left.reshape(matrix.shape)


class TinyE5:
    """One layer over eleven pieces."""

    def __init__(self) -> None:
        random = np.random.default_rng(4)
        self.kept: dict[str, Floats] = {}
        self.stored: dict[str, bytes] = {}

        def floats(name: str, *shape: int, middle: float = 0.0) -> None:
            values = (middle + 0.1 * random.normal(size=shape)).astype(np.float32)
            self.kept[name], self.stored[name] = values, values.tobytes()

        def blocks(name: str, *shape: int) -> None:
            values = (random.normal(size=shape) / 10).astype(np.float32)
            self.stored[name], self.kept[name] = rounded(values)

        blocks("emb.word", len(PIECES), DIMENSIONS)
        floats("emb.pos", PLACES, DIMENSIONS)
        floats("emb.type", 2, DIMENSIONS)
        for name in ("emb.ln", "l0.aln", "l0.oln"):
            floats(f"{name}.w", DIMENSIONS, middle=1.0)
            floats(f"{name}.b", DIMENSIONS)
        sizes = {"fi": (WIDTH, DIMENSIONS), "fo": (DIMENSIONS, WIDTH)}
        for name in ("q", "k", "v", "ao", "fi", "fo"):
            outputs, inputs = sizes.get(name, (DIMENSIONS, DIMENSIONS))
            blocks(f"l0.{name}.w", outputs, inputs)
            floats(f"l0.{name}.b", outputs)

    def write(self, path: Path) -> None:
        """Write the file."""
        blob = "".join(PIECES).encode()
        ends = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)]).astype("<u4")
        replaced = b"".join(
            struct.pack("<IB", code, len(text)) + text.encode("utf-32-le")
            for code, text in REPLACED.items()
        )
        head = b"".join(
            [
                MAGIC,
                HEADER.pack(1, DIMENSIONS, 1, HEADS, WIDTH, len(PIECES), PLACES, 2, EPSILON, BLOCK),
                VOCABULARY.pack(len(PIECES), 0, 2, 1, 3, len(blob)),
                ends.tobytes(),
                np.array(SCORES, "<f4").tobytes(),
                blob,
                struct.pack("<iI", len(REPLACED), len(replaced)),
                replaced,
                struct.pack("<i", len(self.stored)),
            ]
        )
        directory = sum(2 + len(name) + 21 for name in self.stored)
        place, entries = len(head) + directory, []
        for name, content in self.stored.items():
            size = self.kept[name].size
            entries.append(struct.pack("<H", len(name)) + name.encode())
            entries.append(struct.pack("<BIQQ", 0, size, place, len(content)))
            place += len(content)
        path.write_bytes(head + b"".join(entries) + b"".join(self.stored.values()))

    def states(self, ids: list[int]) -> Floats:
        """The hidden states of the tokens, as BERT is defined (Devlin et al. 2019)."""
        kept = self.kept
        found = kept["emb.word"][ids] + kept["emb.pos"][: len(ids)] + kept["emb.type"][0]
        hidden = self.normalised(found, "emb.ln")
        parts = [self.dense(hidden, name).reshape(len(ids), HEADS, -1) for name in "qkv"]
        query, key, value = (part.transpose(1, 0, 2) for part in parts)
        odds = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]))
        mixed = (odds / odds.sum(axis=-1, keepdims=True)) @ value
        attended = self.dense(mixed.transpose(1, 0, 2).reshape(len(ids), -1), "ao")
        hidden = self.normalised(hidden + attended, "l0.aln")
        wide = self.dense(hidden, "fi")
        activated = wide * 0.5 * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
        return self.normalised(hidden + self.dense(activated, "fo"), "l0.oln")

    def dense(self, source: Floats, name: str) -> Floats:
        """One product with a weight, and its bias."""
        return source @ self.kept[f"l0.{name}.w"].T + self.kept[f"l0.{name}.b"]

    def normalised(self, values: Floats, name: str) -> Floats:
        """The values of each token with mean 0 and variance 1, scaled and moved."""
        middle = values.mean(axis=-1, keepdims=True)
        spread = np.sqrt(values.var(axis=-1, keepdims=True) + EPSILON)
        return np.asarray(
            (values - middle) / spread * self.kept[f"{name}.w"] + self.kept[f"{name}.b"]
        )
