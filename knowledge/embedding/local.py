"""Local: the embedding model of this machine, loaded when it is first needed."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np
from django.conf import settings
from django.utils.module_loading import import_string

from knowledge.embedding.embedder import Kind, Vectors
from knowledge.embedding.recent import Recent
from knowledge.names import LOCAL_DIMENSIONS, LOCAL_MODEL

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from knowledge.embedding.runtime import Runtime

MODEL = LOCAL_MODEL
DIMENSIONS = LOCAL_DIMENSIONS
WINDOW = 256  # tokens, [CLS] and [SEP] included: max_seq_length of the model's own settings
REMEMBERED = 10_000  # vectors, 15 MB


class Local:
    """The model of the process: one copy, made when first asked for, by one thread."""

    name = MODEL
    dimensions = DIMENSIONS
    window = WINDOW
    spent = 0

    runtime: "Runtime | None"
    recent: dict[Kind, Recent]

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.lock = threading.Lock()
        self.runtime = None
        self.recent = {kind: Recent(REMEMBERED) for kind in get_args(Kind)}

    def encode(self, texts: Sequence[str], *, kind: Kind = "passage") -> Vectors:
        """Return one unit vector per text: exact for questions, in eight bits for passages."""
        if not texts:
            return np.empty((0, DIMENSIONS), dtype=np.float32)
        runtime = self.loaded()
        return np.stack(
            self.recent[kind].encode(texts, lambda missing: runtime.encode(missing, kind=kind))
        )

    def loaded(self) -> "Runtime":
        """Return the runtime; the first caller waits for it to be imported, not for a graph."""
        with self.lock:
            if self.runtime is None:
                self.runtime = import_string(settings.EMBEDDING_RUNTIME)()
            return self.runtime

    def tokenizer(self) -> "Tokenizer":
        """Return the tokenizer, which costs far less than the model; treat it as read-only."""
        return self.loaded().tokenizer


LOCAL = Local()
