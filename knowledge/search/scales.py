"""Scales: how widely the cosines of an embedding model spread, so that one weight fits all models.

With some models everything is similar to everything: beside differences that small, words would
decide alone.
"""

import numpy as np

from knowledge.names import LOCAL_MODEL
from knowledge.search import binary
from knowledge.search.statements import rows

# Standard deviation of the cosine of two chunks of a collection with all-MiniLM-L6-v2, for which
# the weights were measured: 0.10 to 0.17 on five collections.
USUAL = 0.14
# Chunks that are compared; fewer say nothing.
MOST, FEWEST = 300, 50
# The same ones whenever they are asked for.
SAMPLE = """
SELECT halfvec_send(embedding) FROM knowledge_chunkvector WHERE model = %(model)s
ORDER BY hashint8extended(id, 0) LIMIT %(most)s::int
"""

_known: dict[str, float] = {}


def scale(model: str) -> float:
    """Return what makes the model's cosines as different as the local model's; 1 if in doubt.

    Measured once in a process.
    """
    if model == LOCAL_MODEL:
        return 1.0
    if model not in _known:
        sent = [each for (each,) in rows(SAMPLE, {"model": model, "most": MOST})]
        if len(sent) < FEWEST:
            return 1.0
        vectors = binary.vectors(sent)
        cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
        _known[model] = USUAL / max(float(cosines.std()), USUAL / 10)
    return _known[model]


def forget() -> None:
    """Measure anew."""
    _known.clear()
