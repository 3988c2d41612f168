"""Recent: remembers the vectors of the texts that were encoded last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class Recent:
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
        keys = [key(text) for text in texts]
        with self.lock:
            found = {each: self.vectors[each] for each in keys if each in self.vectors}
        missing = {each: text for each, text in zip(keys, texts, strict=True) if each not in found}
        if missing:
            found |= zip(missing, encode(list(missing.values())), strict=True)
        with self.lock:
            for each in keys:
                self.vectors[each] = found[each]
                self.vectors.move_to_end(each)
            while len(self.vectors) > self.size:
                self.vectors.popitem(last=False)
        return [found[each] for each in keys]


def key(text: str) -> bytes:
    """Return what stands for the text: what a deleted document said must not live on here."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
