"""Selection: of all candidates the few that become the results, and what became of the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings

from knowledge.search.explanation import Reason
from knowledge.search.fusion import maximal_marginal_relevance, one_per_place
from knowledge.search.levels import Weighed

# The reason, and the place of the candidate in whose favour.
Dropped = dict[int, tuple[Reason, int | None]]


@dataclass(frozen=True)
class Selection:
    """Places of the results, best first, and why others are none of them."""

    results: list[int]
    dropped: Dropped


def select(weighed: Weighed, best: Sequence[int], limit: int) -> Selection:
    """Return the best chunk of each section, relevant and not repetitive, at most `limit`.

    `best` holds the places of all chunks, best first.
    """
    first = one_per_place(best, lambda place: weighed.parts[place].section)
    of_section = {weighed.parts[place].section: place for place in first}
    dropped: Dropped = {}
    for place in best:
        better = of_section[weighed.parts[place].section]
        if better != place:
            dropped[place] = ("section", better)
    fetched = first[: max(settings.SEARCH_FETCH_K, limit)]
    dropped |= dict.fromkeys(first[len(fetched) :], ("fetch", None))
    alike = weighed.likeness(fetched)
    chosen = maximal_marginal_relevance(
        relevance([float(weighed.scores[place]) for place in fetched]),
        alike,
        limit=limit,
        trade_off=settings.MMR_LAMBDA,
    )
    for row in set(range(len(fetched))) - set(chosen):
        nearest = chosen[int(np.argmax(alike[row, chosen]))]
        dropped[fetched[row]] = ("variety", fetched[nearest])
    # MMR chooses; the order stays that of the scores, which is better.
    return Selection([fetched[row] for row in sorted(chosen)], dropped)


def relevance(scores: Sequence[float]) -> list[float]:
    """Return the scores, best first, from 1 to 0: what MMR weighs against cosines.

    As parts of the best they would hardly differ, and variety alone would choose.
    """
    span = scores[0] - scores[-1] if scores else 0.0
    return [(score - scores[-1]) / span if span > 0 else 1.0 for score in scores]
