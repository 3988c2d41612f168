"""Embedding: turns texts into vectors, with the model of this machine."""

import os
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knowledge.recent import Recent

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from knowledge.local import LocalModel

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
WINDOW = 256  # tokens, [CLS] and [SEP] included: max_seq_length of the model's own settings
REMEMBERED = 10_000  # vectors, 15 MB
LOCAL = "knowledge.local"

Vectors = NDArray[np.float32]


class Lazily:
    """One thing per process, made when first asked for, by one thread."""

    model: "LocalModel | None"
    tokenizer: "Tokenizer | None"
    recent: Recent

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.lock = threading.Lock()
        self.model = None
        self.tokenizer = None
        self.recent = Recent(REMEMBERED)

    def loaded_model(self) -> "LocalModel":
        """Return the model; the first caller waits about 0.2 s for it."""
        with self.lock:
            if self.model is None:
                self.model = import_module(LOCAL).LocalModel()
            return self.model

    def loaded_tokenizer(self) -> "Tokenizer":
        """Return the tokenizer, which costs far less than the model."""
        with self.lock:
            if self.tokenizer is None:
                self.tokenizer = (
                    self.model.tokenizer if self.model else import_module(LOCAL).load_tokenizer()
                )
            return self.tokenizer


_process = Lazily()
# The runtime's threads do not survive a fork: a child loads its own.
os.register_at_fork(after_in_child=_process.forget)


def encode(texts: Sequence[str]) -> Vectors:
    """Return the vectors of the texts: float32, (number of texts, 384), each of length 1.

    Texts are cut at 256 tokens. Raises EmbeddingUnavailable when the model cannot be loaded.
    """
    if not texts:
        return np.empty((0, DIMENSIONS), dtype=np.float32)
    return np.stack(_process.recent.encode(texts, _process.loaded_model().encode))


def tokenizer() -> "Tokenizer":
    """Return the model's tokenizer, shared by the whole process; treat it as read-only."""
    return _process.loaded_tokenizer()


def count_tokens(text: str) -> int:
    """Return how many tokens of the window the text takes, [CLS] and [SEP] included."""
    return len(tokenizer().encode(text).ids)
