"""Recent: remembers the vectors of the texts that were encoded last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class Recent:
    """At most `size` vectors by text; what was not asked for longest goes first.

    The agents of a turn encode the same question, and the turns of a day the same sentences.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.vectors: OrderedDict[str, Vector] = OrderedDict()
        self.lock = threading.Lock()

    def encode(
        self, texts: Sequence[str], encode: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> list[Vector]:
        """Return one vector per text; `encode` is called for those not remembered, once each."""
        with self.lock:
            found = {text: self.vectors[text] for text in texts if text in self.vectors}
        missing = list(dict.fromkeys(text for text in texts if text not in found))
        if missing:
            found |= zip(missing, encode(missing), strict=True)
        with self.lock:
            for text in texts:
                self.vectors[text] = found[text]
                self.vectors.move_to_end(text)
            while len(self.vectors) > self.size:
                self.vectors.popitem(last=False)
        return [found[text] for text in texts]
