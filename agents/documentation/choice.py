"""Choice: the excerpts taken for an answer so far, kept short, varied and in order."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.documentation.excerpts import Excerpt

# Excerpts more alike than this say the same.
SAME = 0.87
MOST_ITEMS = 8
# Answers read better from few places.
MOST_PASSAGES = 3


class Choice:
    """The excerpts chosen so far, refusing what repeats them or goes beyond the length."""

    def __init__(
        self, excerpts: Sequence[Excerpt], vectors: NDArray[np.float32], most: int
    ) -> None:
        self.excerpts = excerpts
        self.vectors = vectors
        self.most = most
        self.chosen: list[int] = []
        self.lists = 0

    def take(self, place: int) -> bool:
        """Take one excerpt; False when it is refused."""
        if place in self.chosen or len(self.chosen) >= self.most:
            return False
        ranks = {self.excerpts[other].rank for other in self.chosen}
        if len(ranks) >= MOST_PASSAGES and self.excerpts[place].rank not in ranks:
            return False
        if self.chosen and float((self.vectors[self.chosen] @ self.vectors[place]).max()) > SAME:
            return False
        self.chosen.append(place)
        return True

    def take_series(self, place: int) -> None:
        """Take the list an excerpt belongs to, with the sentence that leads to it."""
        first = self.excerpts[place]
        members = [
            other
            for other, s in enumerate(self.excerpts)
            if s.rank == first.rank and s.series == first.series
        ]
        self.most = max(self.most, len(self.chosen) + min(len(members), MOST_ITEMS))
        self.lists += 1
        for member in members:
            self.take(member)
