"""Local: the embedding models of this machine, each loaded when it is first needed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, get_args

import numpy as np
from django.conf import settings
from django.utils.module_loading import import_string
from numpy.typing import NDArray

from knowledge.embedding.embedder import Kind, Vectors
from knowledge.identifiers import LOCAL_DIMENSIONS, LOCAL_MODEL, MULTILINGUAL_MODEL
from knowledge.tokens import WINDOW

if TYPE_CHECKING:
    from knowledge.embedding.runtime import OnnxModel

MODEL, DIMENSIONS = LOCAL_MODEL, LOCAL_DIMENSIONS
# Numbered: raised when knowledge.embedding.minilm writes other graphs.
GRAPHS = "all-MiniLM-L6-v2-2"
LONG_WINDOW = 512  # of the multilingual model, with its prefix
# Across languages cosines differ less; this makes them as different as the local model's within
# one, so that thresholds mean the same. Measured on 48 questions in eight languages about 132
# English pages, and 48 about something else: of these 5 % reach 0.35, the setting's default, and
# half are 0.15 below it; of the others 98 % do. Half as much, and words shared by accident outweigh
# meaning: the right page is first for .40 of the 48 instead of .48.
MIDDLE, SPREAD = 0.077, 3.0
REMEMBERED = 10_000  # vectors, 15 MB

Vector = NDArray[np.float32]


class VectorCache:
    """At most `size` vectors by text; what was not asked for longest goes first.

    The agents of a turn encode the same question, and the turns of a day the same sentences.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self.lock = threading.Lock()

    def encode(
        self, texts: Sequence[str], encode: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> list[Vector]:
        """Return one vector per text; `encode` is called for those not remembered, once each."""
        digests = [text_digest(text) for text in texts]
        with self.lock:
            vectors = {each: self.vectors[each] for each in digests if each in self.vectors}
        missing = {
            digest: text
            for digest, text in zip(digests, texts, strict=True)
            if digest not in vectors
        }
        if missing:
            vectors |= zip(missing, encode(list(missing.values())), strict=True)
        with self.lock:
            for digest in digests:
                self.vectors[digest] = vectors[digest]
                self.vectors.move_to_end(digest)
            while len(self.vectors) > self.size:
                self.vectors.popitem(last=False)
        return [vectors[digest] for digest in digests]


def text_digest(text: str) -> bytes:
    """Return what stands for the text: what a deleted document said must not live on here."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


class Local:
    """A model of the process: one copy, made when first asked for, by one thread."""

    dimensions = DIMENSIONS
    spent = 0

    caches: dict[Kind, VectorCache]
    _runtime: "OnnxModel | None"

    def __init__(self, name: str, window: int, setting: str) -> None:
        self.name, self.window, self.setting = name, window, setting
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.lock = threading.Lock()
        self._runtime = None
        self.caches = {kind: VectorCache(REMEMBERED) for kind in get_args(Kind)}

    def encode(self, texts: Sequence[str], *, kind: Kind = "passage") -> Vectors:
        """Return one unit vector per text. Raises EmbeddingUnavailable."""
        if not texts:
            return np.empty((0, DIMENSIONS), dtype=np.float32)
        runtime = self.runtime()
        return np.stack(
            self.caches[kind].encode(texts, lambda missing: runtime.encode(missing, kind=kind))
        )

    def runtime(self) -> "OnnxModel":
        """Return the runtime; the first caller waits for it to be imported, not for a graph."""
        with self.lock:
            if self._runtime is None:
                self._runtime = import_string(getattr(settings, self.setting))()
            return self._runtime


# What everything is compared with: exact for questions, in eight bits otherwise.
LOCAL = Local(MODEL, WINDOW, "EMBEDDING_RUNTIME")
MULTILINGUAL = Local(MULTILINGUAL_MODEL, LONG_WINDOW, "MULTILINGUAL_RUNTIME")


def encode(texts: Sequence[str]) -> Vectors:
    """Return the vectors of the texts: float32, (number of texts, 384), each of length 1.

    They are exact, as those of questions are. Texts are cut at 256 tokens. Raises
    EmbeddingUnavailable when the model cannot be loaded.
    """
    return LOCAL.encode(texts, kind="question")


def token_states(texts: Sequence[str], *, kind: Kind = "question") -> list[Vectors]:
    """Return what the local model makes of each token of the texts: float32, (tokens, 384) each.

    A text's vector points to their mean; those of passages are in eight bits. Nothing of it is
    remembered. Raises EmbeddingUnavailable.
    """
    return LOCAL.runtime().states(texts, kind=kind)


def encode_any_language(texts: Sequence[str]) -> Vectors:
    """Return vectors, as `encode` does, of texts that may be in any language.

    Of the multilingual model where CROSS_LINGUAL lets it be asked, else of the local one, which
    was made for English. Raises EmbeddingUnavailable.
    """
    model = MULTILINGUAL if settings.CROSS_LINGUAL else LOCAL
    return model.encode(texts, kind="question")


def similarities(question: str, texts: Sequence[str], *, is_foreign: bool) -> Vectors:
    """Return the cosine of the question with each text: float32, (number of texts,).

    `is_foreign` says that they are in different languages: the multilingual model is asked where
    CROSS_LINGUAL lets it, and its cosines come as different as the local model's are within one.
    Raises EmbeddingUnavailable.
    """
    if is_foreign and settings.CROSS_LINGUAL and texts:
        (asked,) = MULTILINGUAL.encode([question], kind="question")
        cosines: Vectors = MULTILINGUAL.encode(texts, kind="passage") @ asked
        return np.asarray(SPREAD * (cosines - MIDDLE))
    vectors = encode([question, *texts])
    return np.asarray(vectors[1:] @ vectors[0])
