"""Local: the embedding model that runs in this process, all-MiniLM-L6-v2 on ONNX Runtime.

Imported only when something is to be encoded: the runtime takes 25 MB of every process.
"""

import threading
from collections.abc import Iterator, Sequence

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi.onnxruntime_pybind11_state import (
    RuntimeException,
)
from tokenizers import Tokenizer

from knowledge.embedding import DIMENSIONS, MODEL, WINDOW
from knowledge.errors import EmbeddingUnavailable
from knowledge.weights import graph, package_folder

SEPARATOR = 102  # [SEP]
THREADS = 2
# Padded tokens of one run. 512 to 2,048 are equally fast on two cores; 1,024 keeps activations
# under 30 MB where batches of sixteen 256-token texts take 200 MB.
TOKENS_PER_RUN = 1024

Ids = list[int]
Vectors = NDArray[np.float32]


class LocalModel:
    """The tokenizer and the graph, loaded; safe to use from several threads."""

    def __init__(self) -> None:
        self.tokenizer = load_tokenizer()
        self.turn = threading.Lock()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.inter_op_num_threads = 1
        # Threads that spin while they wait take the second core from everybody else.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # The arena never gives memory back: 40 MB more for no speed.
        options.enable_cpu_mem_arena = False
        try:
            self.session = onnxruntime.InferenceSession(
                str(graph()), options, providers=["CPUExecutionProvider"]
            )
        except RuntimeException as error:
            raise EmbeddingUnavailable(f"The graph of {MODEL} cannot be loaded: {error}") from error

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order."""
        ids = [windowed(self.tokenizer.encode(text).ids) for text in texts]
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for batch in batches([len(each) for each in ids]):
            # One run at a time: a run takes every core, and twenty at once only slow each other.
            with self.turn:
                vectors[batch] = self.run([ids[place] for place in batch])
        return vectors

    def run(self, ids: Sequence[Ids]) -> Vectors:
        """Return the unit vectors of one batch: the mean of the hidden states of real tokens."""
        shape = (len(ids), max(len(each) for each in ids))
        padded, mask = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        for row, each in enumerate(ids):
            padded[row, : len(each)] = each
            mask[row, : len(each)] = 1
        (states,) = self.session.run(None, {"ids": padded, "mask": mask})
        sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
        unit: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return unit


def windowed(ids: Ids) -> Ids:
    """Return the ids the model sees: cut before the separator, as sentence-transformers does."""
    return ids if len(ids) <= WINDOW else [*ids[: WINDOW - 1], SEPARATOR]


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield places in `lengths`, texts of like length together, so that little is padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Ascending order: the newest is the longest, and all are padded to it.
        if batch and lengths[place] * (len(batch) + 1) > TOKENS_PER_RUN:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def load_tokenizer() -> Tokenizer:
    """Return the model's tokenizer, which neither cuts nor pads."""
    tokenizer = Tokenizer.from_file(str(package_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
