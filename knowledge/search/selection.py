"""Selection: of all candidates the few that become the results, and what became of the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings

from knowledge.embedding import Vectors
from knowledge.search.explanation import Reason
from knowledge.search.fusion import maximal_marginal_relevance, one_per_place
from knowledge.search.levels import WeighedChunks

# The reason, and the place of the candidate in whose favour.
Dropped = dict[int, tuple[Reason, int | None]]


@dataclass(frozen=True)
class Selection:
    """Places of the candidates that become results, best first, and of those weighed for it."""

    results: list[int]
    fetched: list[int]  # the best chunk of each section, as many as are weighed
    alike: Vectors  # cosine of each pair of those

    def dropped(self, weighed: WeighedChunks, best: Sequence[int]) -> Dropped:
        """Return why the others are no results."""
        dropped: Dropped = {}
        of_section: dict[int, int] = {}
        for place in best:
            better = of_section.setdefault(weighed.parts[place].section, place)
            dropped[place] = ("fetch", None) if better == place else ("section", better)
        rows = [row for row, place in enumerate(self.fetched) if place in self.results]
        for row, place in enumerate(self.fetched):
            nearest = rows[int(np.argmax(self.alike[row, rows]))]
            dropped[place] = ("variety", self.fetched[nearest])
        return {place: why for place, why in dropped.items() if place not in self.results}


def select(
    weighed: WeighedChunks, best: Sequence[int], limit: int, *, once_per_section: bool = True
) -> Selection:
    """Return the best chunk of each section, relevant and not repetitive, at most `limit`.

    `best` holds the places of all chunks, best first. Within named documents a section may have
    several: one without headings is a single section.
    """
    first: Sequence[int] = best
    if once_per_section:
        first = one_per_place(best, lambda place: weighed.parts[place].section)
    fetched = first[: max(settings.SEARCH_FETCH_K, limit)]
    alike = weighed.likeness(fetched)
    chosen = maximal_marginal_relevance(
        relevance([float(weighed.scores[place]) for place in fetched]),
        alike,
        limit=limit,
        trade_off=settings.MMR_LAMBDA,
    )
    # MMR chooses; the order stays that of the scores, which is better.
    return Selection([fetched[row] for row in sorted(chosen)], list(fetched), alike)


def relevance(scores: Sequence[float]) -> list[float]:
    """Return the scores, best first, from 1 to 0: what MMR weighs against cosines.

    As parts of the best they would hardly differ, and variety alone would choose.
    """
    span = scores[0] - scores[-1] if scores else 0.0
    return [(score - scores[-1]) / span if span > 0 else 1.0 for score in scores]
