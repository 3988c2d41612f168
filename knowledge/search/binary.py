"""Binary: what PostgreSQL sends of vectors and arrays, as numpy reads it."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# Of a vector: how many numbers there are, and a zero, then half-precision floats.
HALF, VECTOR_HEADER = np.dtype(">f2"), 2
# Of an array with one dimension: five integers about it, then each value with its length before.
ARRAY_HEADER = 20
Kind = Literal["integer", "bigint", "real"]
VALUES = {
    kind: np.dtype([("length", ">i4"), ("value", value)])
    for kind, value in {"integer": ">i4", "bigint": ">i8", "real": ">f4"}.items()
}


def vectors(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Return one vector or more, by `halfvec_send`, as rows."""
    numbers = np.frombuffer(b"".join(sent), HALF).reshape(len(sent), -1)
    return numbers[:, VECTOR_HEADER:].astype(np.float32)


def array(sent: bytes | None, kind: Kind) -> NDArray[Any]:
    """Return an array of that kind without NULL, by `array_send`; for none an empty one."""
    return np.frombuffer(sent[ARRAY_HEADER:] if sent else b"", VALUES[kind])["value"]
