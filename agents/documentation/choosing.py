"""Choosing: which excerpts make up an extractive answer, and in which order."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.documentation.choice import Choice
from agents.documentation.excerpts import LEADING, Excerpt
from agents.terms import APOSTROPHE, words

# Below this no excerpt answers the question.
ANSWERS = 0.38
# A further excerpt must come this close to the best one; one beside a chosen one, this close;
# a list is quoted whole when most of it comes this close.
CLOSE, BESIDE, MOST_OF_LIST = 0.84, 0.66, 0.66
# "It does not…" right after a chosen sentence goes on about it.
GOES_ON = 0.45
# Answers read better from one place: its excerpts count this much more.
SAME_PASSAGE = 0.05
# A second list, or one from elsewhere, makes an answer long: it has to be nearly as good.
ANOTHER_LIST = 0.95
# "See here.", a bare link and a question say nothing; "This is why." says little by itself.
POINTS, LEANS = 0.15, 0.04
FEWEST_WORDS = 4
MOST, BRIEF, DETAILED = 5, 2, 9
LEANING = re.compile(
    r"^\W*(?:this|that|these|those|it|they|then|however|but|so|or|and|also)\b", re.IGNORECASE
)
POINTER = re.compile(
    r"^\W*(?:see|read|learn|check|view|click|more)\b.{0,90}$|\bhere\W*(?:\]\S*)?$"
    rf"|^here['{APOSTROPHE}]s how\b.*[^:]$"
    r"|^\W*\[[^\]]*\]\([^)]*\)\W*$|\?$",
    re.IGNORECASE,
)
EXACT = re.compile(r"^(\d+) (?:lines|sentences)$")


def length_wished(notes: Sequence[str]) -> int:
    """How many excerpts the answer may have at most, from what the user wished."""
    for note in notes:
        if exact := EXACT.match(note):
            return max(1, int(exact[1]))
    if "brief" in notes:
        return BRIEF
    return DETAILED if "detailed" in notes else MOST


def choose(
    excerpts: Sequence[Excerpt],
    scores: NDArray[np.float32],
    vectors: NDArray[np.float32],
    notes: Sequence[str],
) -> list[Excerpt]:
    """The excerpts that answer, ready to be read; none when nothing comes near enough."""
    worthy = _worthy(excerpts, scores)
    if not len(worthy) or worthy.max() < ANSWERS:
        return []
    lead = int(worthy.argmax())
    best = float(worthy[lead])
    worthy += SAME_PASSAGE * np.array([s.rank == excerpts[lead].rank for s in excerpts])
    most = length_wished(notes)
    choice = Choice(excerpts, vectors, most)
    for place in (int(each) for each in np.argsort(-worthy)):
        if worthy[place] < max(CLOSE * best, ANSWERS) or len(choice.chosen) >= choice.most:
            break
        whole = most >= MOST and _whole_list(excerpts, worthy, place, MOST_OF_LIST * best)
        first = not choice.lists and excerpts[place].rank == excerpts[lead].rank
        if whole and (first or worthy[place] >= ANOTHER_LIST * best):
            choice.take_series(place)
        elif choice.take(place) and most >= MOST:
            _take_beside(choice, worthy, place, best)
    return in_order(excerpts, _without_loose_ends(excerpts, choice.chosen))


def _worthy(excerpts: Sequence[Excerpt], scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The scores, less for excerpts that say little where they stand alone."""
    lost = [
        POINTS * bool(POINTER.search(s.text) or len(words(s.text)) < FEWEST_WORDS)
        + LEANS * bool(LEANING.match(s.text))
        for s in excerpts
    ]
    return scores - np.array(lost, np.float32)


def _whole_list(
    excerpts: Sequence[Excerpt], scores: NDArray[np.float32], place: int, floor: float
) -> bool:
    """Whether an excerpt is a step, or of a list that is about the question as a whole."""
    excerpt = excerpts[place]
    if excerpt.series < 0:
        return False
    members = [
        other
        for other, s in enumerate(excerpts)
        if s.rank == excerpt.rank and s.series == excerpt.series
    ]
    steps = any(excerpts[member].numbered for member in members)
    return steps or 2 * sum(scores[member] >= floor for member in members) > len(members)


def _without_loose_ends(excerpts: Sequence[Excerpt], chosen: Sequence[int]) -> list[int]:
    """Drop what leads to a list or to code that was not taken."""
    return [
        place
        for place in chosen
        if not excerpts[place].text.endswith(LEADING)
        or (place + 1 in chosen and excerpts[place + 1].rank == excerpts[place].rank)
    ]


def _take_beside(choice: Choice, scores: NDArray[np.float32], place: int, best: float) -> None:
    """Take what follows a chosen sentence in its passage, when it still belongs to the subject."""
    beside = place + 1
    if beside >= len(scores) or choice.excerpts[beside].rank != choice.excerpts[place].rank:
        return
    following = choice.excerpts[beside]
    goes_on = following.series < 0 and LEANING.match(following.text)
    if scores[beside] < (GOES_ON if goes_on else BESIDE) * best:
        return
    if following.series < 0:
        choice.take(beside)
    elif not choice.lists:
        choice.take_series(beside)


def in_order(excerpts: Sequence[Excerpt], chosen: Sequence[int]) -> list[Excerpt]:
    """The chosen excerpts as they stand in their passages, the best excerpt's passage first."""
    ranks = list(dict.fromkeys(excerpts[place].rank for place in chosen))
    return sorted(
        (excerpts[place] for place in chosen), key=lambda s: (ranks.index(s.rank), s.place)
    )
