"""Explanation: what every level thought of every candidate, and why most of them were dropped."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

# Why a candidate is no result. `section`: `by` is the better chunk of the same section. `fetch`:
# it came after the SEARCH_FETCH_K best. `variety`: MMR preferred others, most of all to say
# something that `by` had not said. `filter`: its language or audience was not asked for. `budget`:
# a result, but what is read of the results ended before it.
Reason = Literal["section", "fetch", "variety", "filter", "budget"]

REASONS: dict[Reason, str] = {
    "section": "another chunk of the same section ranks higher",
    "fetch": "ranks below the candidates that are weighed against each other",
    "variety": "relevant, but others say more that is new",
    "filter": "its language or audience was not asked for",
    "budget": "found, but beyond the characters that are read",
}


@dataclass(frozen=True)
class Standing:
    """Where one level put a candidate for one wording of the question."""

    level: str  # keyword, semantic, hierarchical or summary
    wording: int  # place in `Explanation.wordings`; 0 is the question
    rank: int  # among the candidates, from 1
    score: float  # share of the words' weight, or cosine on the scale of the local model


@dataclass(frozen=True)
class ConsideredChunk:
    """A chunk that some level named."""

    chunk_id: int
    document_id: str
    title: str
    section: str
    source: str
    text: str
    standings: tuple[Standing, ...]
    score: float  # fused; of what a filter kept out, the score it would have had
    cosine: float | None
    alignment: float | None = None  # token by token, -1 to 1; None: its tokens were not read
    place: int | None = None  # in the results, from 1; None when it is none
    dropped: Reason | None = None
    by: int | None = None  # the chunk in whose favour it was dropped

    @property
    def why(self) -> str:
        """The reason in words; empty for a result that is read."""
        return REASONS[self.dropped] if self.dropped else ""


@dataclass(frozen=True)
class Wording:
    """A text that was searched for: the question, a second wording, or one made up for it."""

    text: str
    kind: str  # question, alternative, expand or hyde
    weight: float  # of its rankings; the question's is 1


@dataclass(frozen=True)
class Explanation:
    """Everything one search considered, best first, then what the filters kept out."""

    wordings: tuple[Wording, ...]
    weights: dict[str, float]  # level → its weight in the fusion
    candidates: tuple[ConsideredChunk, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain dictionaries and lists."""
        return {
            "wordings": [asdict(each) for each in self.wordings],
            "weights": dict(self.weights),
            "candidates": [asdict(each) | {"why": each.why} for each in self.candidates],
        }
