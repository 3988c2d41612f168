"""Excerpts: what the passages say, piece by piece, and how near each is to the question."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.attributes import SourceReference
from agents.terms import terms
from knowledge.embedding import encode
from knowledge.sentences import blocks, split

# Shares of an excerpt's score. Steps are terse: their heading and what stands around them say
# what they are about.
OWN, AROUND, HEADING, TERMS = 0.45, 0.15, 0.15, 0.25
# Passages come best first; each starts a little lower than the one before.
PER_RANK = 0.02
# Who asks how something is done wants the steps.
STEPS, FEWEST_STEPS = 0.1, 3
HOW_TO = re.compile(
    r"^\W*(?:how (?:do|can|to|could|should)|wie|cómo|comment|как|\u600e\u4e48|\u5982\u4f55)",
    re.IGNORECASE,
)
# How a sentence ends that leads to a list; the second is the Chinese colon.
LEADING = (":", "\uff1a")
ROW = re.compile(r"^(?:[-*]\s+)?[^:;]{1,60}: [^;]+; [^:;]{1,60}: ")
NUMBERED = r"^\s*\d{1,3}[.)]\s+"


@dataclass(frozen=True)
class Excerpt:
    """One sentence, list item, table row or code block of a passage."""

    reference: SourceReference
    rank: int  # of its passage, the best is 0
    place: int  # within its passage
    text: str
    kind: str  # "prose", "item", "row" or "code"
    series: int  # items of one list share it, with the sentence that leads to them; else -1
    numbered: bool = False


def excerpts_of(reference: SourceReference, rank: int) -> list[Excerpt]:
    """The excerpts of one passage in order, lists joined to the sentence before them."""
    pieces: list[tuple[str, str]] = []
    for kind, block in blocks(reference.text):
        texts = split(block) if kind == "prose" else [block]
        # A table was made a list of its rows when it was ingested; they are no steps.
        named = "row" if kind == "item" and ROW.match(block) else kind
        pieces.extend((named, text) for text in texts if text)
    series = -1
    found: list[Excerpt] = []
    for place, (kind, text) in enumerate(pieces):
        follows = place + 1 < len(pieces) and pieces[place + 1][0] == "item"
        leads = kind == "prose" and follows and text.endswith(LEADING)
        if leads or (kind == "item" and (not found or found[-1].series != series or series < 0)):
            series = place
        joined = series if leads or kind == "item" else -1
        if joined < 0:
            series = -1
        numbered = kind == "item" and _numbered(text, reference.text)
        found.append(Excerpt(reference, rank, place, text, kind, joined, numbered))
    return found


def _numbered(item: str, passage: str) -> bool:
    return re.search(NUMBERED + re.escape(item[:20]), passage, re.MULTILINE) is not None


def scored(
    question: str, references: Sequence[SourceReference]
) -> tuple[list[Excerpt], NDArray[np.float32], NDArray[np.float32]]:
    """All excerpts, how well each answers `question` (0 to about 1), and their vectors."""
    excerpts = [s for rank, r in enumerate(references) for s in excerpts_of(r, rank)]
    if not excerpts:
        return [], np.zeros(0, np.float32), np.zeros((0, 1), np.float32)
    headings = [f"{r.title}: {r.section}" for r in references]
    vectors = encode([question, *headings, *(s.text for s in excerpts)])
    asked, above, own = vectors[0], vectors[1 : 1 + len(headings)], vectors[1 + len(headings) :]
    near, topical = own @ asked, above @ asked
    around = [_mean_of_best(near, excerpts, rank) for rank in range(len(references))]
    scores = OWN * near + TERMS * _shared_terms(question, excerpts)
    scores += np.array(
        [AROUND * around[s.rank] + HEADING * topical[s.rank] - PER_RANK * s.rank for s in excerpts]
    )
    if HOW_TO.match(question):
        # Items under a bold label are cases or features, not steps.
        steps = (s for s in excerpts if s.kind == "item" and not s.text.startswith("**"))
        length = Counter((s.rank, s.series) for s in steps)
        scores += STEPS * np.array([length[s.rank, s.series] >= FEWEST_STEPS for s in excerpts])
    return excerpts, scores.astype(np.float32), own


def _mean_of_best(near: NDArray[np.float32], excerpts: Sequence[Excerpt], rank: int) -> float:
    """How near the best three excerpts of a passage are, in the mean; 0 when it has none."""
    best = sorted((float(near[place]) for place, s in enumerate(excerpts) if s.rank == rank))[-3:]
    return sum(best) / len(best) if best else 0.0


def _shared_terms(question: str, excerpts: Sequence[Excerpt]) -> NDArray[np.float32]:
    """The share of the question's terms in each excerpt, its section's heading included.

    A term counts the more, the fewer excerpts have it.
    """
    wanted = terms(question)
    if not wanted:
        return np.zeros(len(excerpts), np.float32)
    have = [set(terms(f"{s.reference.section} {s.text}")) for s in excerpts]
    rarity = {
        term: np.log((1 + len(have)) / (1 + sum(term in each for each in have))) + 0.1
        for term in wanted
    }
    total = sum(rarity.values())
    return np.array(
        [sum(rarity[t] for t in wanted if t in each) / total for each in have], np.float32
    )
