"""Encoding: the vectors of a question, by every embedding model that its collections use."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding import Kind, models
from knowledge.errors import EmbeddingUnavailable
from knowledge.search.explanation import Wording

# Embedding model → vectors, a row per wording.
Encoded = dict[str, NDArray[np.float32]]


def encode(wordings: Sequence[Wording], names: Iterable[str]) -> tuple[Encoded, str]:
    """Return the vectors of the models that can be used, and why others cannot.

    No transaction may be open: a model behind an endpoint takes its time.
    """
    vectors: Encoded = {}
    errors = []
    for name in names if wordings else ():
        try:
            vectors[name] = encoded(wordings, name)
        except EmbeddingUnavailable as error:
            errors.append(str(error))
    return vectors, f"Only words were compared: {' '.join(errors)}" if errors else ""


def encoded(wordings: Sequence[Wording], name: str) -> NDArray[np.float32]:
    """Return a vector per wording. Raises EmbeddingUnavailable."""
    model = models.named(name)
    rows: dict[int, NDArray[np.float32]] = {}
    kinds: tuple[Kind, ...] = ("question", "passage")
    for kind in kinds:
        places = [place for place, each in enumerate(wordings) if kind_of(each) == kind]
        if places:
            texts = [wordings[place].text for place in places]
            rows |= dict(zip(places, model.encode(texts, kind=kind), strict=True))
    return np.stack([rows[place] for place in range(len(wordings))])


def kind_of(wording: Wording) -> Kind:
    """Return whether it asks, or answers and is compared as passages are."""
    return "passage" if wording.kind == "hyde" else "question"
