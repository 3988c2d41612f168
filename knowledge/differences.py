"""Differences: what changed from one text to the next, line by line. Pure functions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

# Unchanged lines shown around a change.
CONTEXT = 2
# SequenceMatcher may take a time that grows with the square of the lines between the first change
# and the last.
LINES_COMPARED = 2_000


class TooLong(ValueError):
    """The texts differ in too many lines to be compared."""


@dataclass(frozen=True)
class Line:
    """A line of either text; `gap` stands for unchanged lines left out."""

    kind: Literal["same", "gone", "added", "gap"]
    text: str = ""


def differences(before: str, after: str) -> list[Line]:
    """Return the lines that differ, with a little of what is around them. Raises TooLong."""
    old, new = before.splitlines(), after.splitlines()
    head = alike(old, new)
    tail = alike(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > LINES_COMPARED:
        raise TooLong
    # What both begin and end with needs no comparing, save for the lines to be shown.
    begin, end = max(head - CONTEXT, 0), max(tail - CONTEXT, 0)
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    return list(told(old, new, cut_before=begin > 0, cut_after=end > 0))


def alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def told(
    old: Sequence[str], new: Sequence[str], *, cut_before: bool, cut_after: bool
) -> Iterator[Line]:
    """Yield the lines of the changes, a gap wherever unchanged ones are left out."""
    groups = list(SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT))
    for number, group in enumerate(groups):
        if number or cut_before:
            yield Line("gap")
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                yield from (Line("same", text) for text in old[old_from:old_to])
            else:
                yield from (Line("gone", text) for text in old[old_from:old_to])
                yield from (Line("added", text) for text in new[new_from:new_to])
    if groups and cut_after:
        yield Line("gap")
