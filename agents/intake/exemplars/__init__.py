"""Exemplars: sentences that stand for their kind; texts are compared with them by embedding."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding import encode
from knowledge.embedding.kept_vectors import kept
from knowledge.embedding.local import MIDDLE, MULTILINGUAL, SPREAD

FOLDER = Path(__file__).parent
# How fast the weight of an exemplar falls with its distance: at a cosine of 0.9 it has a fifth of
# its vote, at 0.7 a hundredth. 12 and 16 did better than 8 and 20 on questions that are safe or
# look unsafe, and better than the nearest one, two or three neighbours.
SHARPNESS = 16.0


@cache
def lines(name: str) -> tuple[str, ...]:
    """The sentences of `<name>.txt`: one a line, without blank lines and comments."""
    text = (FOLDER / f"{name}.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and line[0] != "#")


@cache
def _vectors(name: str) -> NDArray[np.float32]:
    return kept(lines(name))


@cache
def _foreign_vectors(name: str) -> NDArray[np.float32]:
    return MULTILINGUAL.encode(lines(name), kind="passage")


def votes(
    texts: Sequence[str], kinds: Sequence[str], *, is_foreign: bool = False
) -> list[dict[str, float]]:
    """For each text, the votes of the exemplars of each kind.

    An exemplar gives exp(SHARPNESS * (cosine - 1)): 1 to its own words, next to nothing to
    what is far from it. So what no exemplar is near to gets next to no votes at all. `is_foreign`
    asks the multilingual model, whose cosines lie farther apart, up to about 2.3. Raises
    EmbeddingUnavailable.
    """
    cosines = _foreign_cosines if is_foreign else _cosines
    weights = {
        kind: np.exp(SHARPNESS * (near - 1)).sum(axis=1)
        for kind, near in cosines(texts, kinds).items()
    }
    return [{kind: float(weights[kind][row]) for kind in kinds} for row in range(len(texts))]


def _cosines(texts: Sequence[str], kinds: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    vectors = encode(texts)
    return {kind: vectors @ _vectors(kind).T for kind in kinds}


def _foreign_cosines(texts: Sequence[str], kinds: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    vectors = MULTILINGUAL.encode(texts, kind="question")
    return {kind: SPREAD * (vectors @ _foreign_vectors(kind).T - MIDDLE) for kind in kinds}


def worth(vote: float) -> float:
    """The cosine at which a single exemplar would give `vote`; -1 when there is none."""
    return max(-1.0, 1 + math.log(vote) / SHARPNESS) if vote > 0 else -1.0
