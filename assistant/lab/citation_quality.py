"""Measuring: how far what is said of citations agrees with people who judged claims."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from rich.console import RenderableType
from rich.table import Table

from agents.attributes import CitationStatus
from agents.documentation.citations.check import support
from assistant.lab.evaluation_tables import shown
from assistant.lab.judged_folder import Line, Unjudgeable, read
from assistant.lab.ranking import detection
from knowledge.embedding import encode

SUPPORTED = "supported"
# About as long as the passages of an answer; of a longer text a window of this size is taken.
WINDOW = 2400
LONGEST_SENTENCE = 1000
NEAREST = 3


class Claim(Line):
    """A claim, the sentences it is said to come from, and how far they support it.

    The format of WiCE (Kamoi et al. 2023); `supporting_sentences` holds sets of their places.
    """

    claim: str = Field(min_length=1)
    evidence: list[str] = Field(min_length=1)
    label: Literal["supported", "partially_supported", "not_supported"]
    supporting_sentences: list[list[int]] = []


def claims_of(path: Path) -> list[Claim]:
    """Return the claims of the file. Raises Unjudgeable, which names the line."""
    found = [each for _, each in read(path, Claim)]
    if len({each.label == SUPPORTED for each in found}) < 2:
        raise Unjudgeable(f"{path}: it takes claims that are supported and others.")
    return found


def passage(claim: Claim) -> str:
    """The window of the evidence with most of what supports the claim, else the nearest to it."""
    vectors = encode([claim.claim, *(each[:LONGEST_SENTENCE] for each in claim.evidence)])
    near = vectors[1:] @ vectors[0]
    holding = {place for each in claim.supporting_sentences for place in each}

    def worth(window: range) -> tuple[int, float]:
        return len(holding.intersection(window)), float(np.sort(near[window])[-NEAREST:].sum())

    best = max(windows([len(each) for each in claim.evidence]), key=worth)
    return "\n".join(claim.evidence[place] for place in best)[:WINDOW]


def windows(lengths: Sequence[int]) -> list[range]:
    """Every longest run of sentences that stays within the window, at least one sentence each."""
    found = []
    for begin in range(len(lengths)):
        end, size = begin, 0
        while end < len(lengths) and size + lengths[end] <= WINDOW:
            size += lengths[end] + 1
            end += 1
        found.append(range(begin, max(end, begin + 1)))
        if end >= len(lengths):
            break
    return found


def figures(claims: Sequence[Claim], found: Sequence[CitationStatus]) -> dict[str, Any]:
    """Compare: `verified` with what is supported, `unsupported` with what is not wholly so.

    `removed` is the share of the supported claims that an answer would lose.
    """
    supported = [each.label == SUPPORTED for each in claims]
    result: dict[str, Any] = {"claims": len(claims), "supported": sum(supported)}
    for status, true in (("verified", supported), ("unsupported", [not s for s in supported])):
        said = [each == status for each in found]
        result[status] = {"said": sum(said)} | asdict(detection(said, true))
    lost = sum(s and f == "unsupported" for s, f in zip(supported, found, strict=True))
    return result | {"removed": lost / sum(supported)}


def measure(path: Path) -> tuple[dict[str, Any], RenderableType]:
    """Return the figures of a file, as JSON values and for people."""
    claims = claims_of(path)
    found = figures(claims, [support(each.claim, passage(each)) for each in claims])
    table = Table(
        "",
        "said",
        "precision",
        "recall",
        title=f"{found['claims']} claims, {found['supported']} of them supported; of these "
        f"{shown(found['removed'])} would be removed",
        title_justify="left",
    )
    for name in ("verified", "unsupported"):
        row = found[name]
        table.add_row(name, str(row["said"]), shown(row["precision"]), shown(row["recall"]))
    return found, table
