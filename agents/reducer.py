"""Reducer: how what several agents wrote at the same time becomes one value of the payload.

What agents of one batch wrote is brought together once the last of them is done, in the order of
their steps: the order in which they end changes nothing. `agents_reduce` does the same in the
database.
"""

from enum import StrEnum
from typing import Any


class Reducer(StrEnum):
    """What becomes of a value that is there and a new one."""

    KEEP_FIRST = "keep_first"  # the first that is not empty
    TAKE_MAX = "take_max"
    MERGE_DICT = "merge_dict"  # of equal keys the new one
    UNIQUE_LIST = "unique_list"  # both lists, each item once, at its first place
    CONCATENATE = "concatenate"
    OR = "or"


# What JSON a reducer can work with.
TAKEN: dict[Reducer, tuple[type, ...]] = {
    Reducer.KEEP_FIRST: (str, list, dict, int, float, bool),
    Reducer.TAKE_MAX: (int, float),
    Reducer.MERGE_DICT: (dict,),
    Reducer.UNIQUE_LIST: (list,),
    Reducer.CONCATENATE: (list,),
    Reducer.OR: (bool,),
}
# For which of them the order of the steps does not matter either.
COMMUTATIVE = frozenset({Reducer.TAKE_MAX, Reducer.OR})
EMPTY: tuple[Any, ...] = (None, "", [], {})


def reduced(reducer: Reducer, before: Any, new: Any) -> Any:
    """Return what two values come to, JSON both; `before` is None where nothing was written yet."""
    match reducer:
        case Reducer.UNIQUE_LIST:
            return _unique([*(before or []), *new])
        case _ if before is None:
            return new
        case Reducer.KEEP_FIRST:
            return new if before in EMPTY else before
        case Reducer.TAKE_MAX:
            return max(before, new)
        case Reducer.MERGE_DICT:
            return before | new
        case Reducer.CONCATENATE:
            return [*before, *new]
        case Reducer.OR:
            return before or new


def _unique(items: list[Any]) -> list[Any]:
    return [item for place, item in enumerate(items) if item not in items[:place]]
