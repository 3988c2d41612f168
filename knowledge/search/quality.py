"""Quality: whether what was found can carry an answer. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.search.found import Quality


@dataclass(frozen=True)
class Verdict:
    """How far the passages of a search can be trusted."""

    quality: Quality
    no_context: bool
    usable: int
    best_cosine: float | None
    mean_cosine: float | None  # of the best hits only, as many as must be usable


# Around the threshold, in cosine. Measured with all-MiniLM-L6-v2: the best three passages average
# 0.12 to 0.28 for questions about something else, 0.37 to 0.76 for questions a collection of
# product documentation answers.
USABLE_BELOW = 0.15  # a hit this far below the threshold still counts as one
EXCELLENT_ABOVE = 0.2  # a best passage this far above it needs no second look


def judge(
    cosines: Sequence[float | None], *, threshold: float, min_hits: int, chunks: int
) -> Verdict:
    """Judge a search by the cosines of its passages.

    There is no context when fewer than `min_hits` passages are usable, or when the mean of the
    best `min_hits` is under the threshold. Not the mean of all: the more passages a caller asks
    for, the lower that would be. `chunks` is how many there are to be found at all: two chunks
    cannot yield three hits. Without any cosine (no embedding), keyword hits are at best good.
    """
    needed = max(1, min(min_hits, chunks))
    known = sorted((cosine for cosine in cosines if cosine is not None), reverse=True)
    if not known:
        enough = len(cosines) >= needed
        return Verdict("good" if enough else "poor", not enough, len(cosines), None, None)
    usable = sum(cosine >= threshold - USABLE_BELOW for cosine in known)
    mean = sum(known[:needed]) / needed
    if usable < needed or mean < threshold:
        return Verdict("poor", True, usable, known[0], mean)
    excellent = known[0] >= threshold + EXCELLENT_ABOVE
    return Verdict("excellent" if excellent else "good", False, usable, known[0], mean)
