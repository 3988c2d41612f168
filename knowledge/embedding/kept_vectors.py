"""Kept vectors: of texts that come with Docent and hardly ever change, encoded once per machine."""

import logging
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from django.conf import settings

from knowledge.embedding import encode
from knowledge.embedding.embedder import Vectors
from knowledge.embedding.local import DIMENSIONS, GRAPHS
from knowledge.folder_lock import alone

FOLDER = "vectors"

log = logging.getLogger(__name__)


def kept(texts: Sequence[str]) -> Vectors:
    """Return `encode(texts)`, of shape (texts, 384), from a file of the state folder if it has one.

    Processes that need the same texts wait for the one that encodes them. Where the folder cannot
    be written, each encodes for itself. Raises EmbeddingUnavailable.
    """
    folder = Path(settings.STATE_DIR) / "models" / FOLDER
    path = folder / f"{digest(texts)}.npy"
    if (vectors := _read(path, len(texts))) is not None:
        return vectors
    with alone(folder):
        # Another process may have written it while this one waited.
        if (vectors := _read(path, len(texts))) is not None:
            return vectors
        vectors = encode(texts)
        _write(path, vectors)
    return vectors


def digest(texts: Sequence[str]) -> str:
    """Return what stands for these texts and the model: another of either has another file."""
    whole = "\0".join([GRAPHS, settings.EMBEDDING_RUNTIME, *texts])
    return blake2b(whole.encode(), digest_size=16).hexdigest()


def _read(path: Path, count: int) -> Vectors | None:
    try:
        vectors: Vectors = np.load(path)
    except (OSError, EOFError, ValueError):
        return None
    return vectors if vectors.shape == (count, DIMENSIONS) else None


def _write(path: Path, vectors: Vectors) -> None:
    """Write the file whole or not at all."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
            np.save(draft, vectors)
        Path(draft.name).chmod(0o644)
        Path(draft.name).rename(path)
    except OSError as error:
        log.info("vectors are not kept: %s", error)
