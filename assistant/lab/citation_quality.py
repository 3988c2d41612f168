"""Citation quality: how far what is said of citations agrees with people who judged claims."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from agents.attributes import CitationStatus, SourceReference
from agents.documentation.citations.check import support
from agents.documentation.citations.nearness import Nearness
from assistant.lab.judged_data import Line, Unjudgeable, read_lines
from assistant.lab.measures import detection, digits
from knowledge.embedding import encode

SUPPORTED = "supported"
# About as long as the passages of an answer; of a longer text a window of this size is taken.
WINDOW = 2400
LONGEST_SENTENCE = 1000
NEAREST = 3
# Passages beside the one that a claim comes from.
BESIDE = 5


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
    claims = [claim for _, claim in read_lines(path, Claim)]
    if len({claim.label == SUPPORTED for claim in claims}) < 2:
        raise Unjudgeable(f"{path}: it takes claims that are supported and others.")
    return claims


def passage(claim: Claim) -> str:
    """The window of the evidence with most of what supports the claim, else the nearest to it."""
    sentences = [sentence[:LONGEST_SENTENCE] for sentence in claim.evidence]
    vectors = encode([claim.claim, *sentences])
    similarity = vectors[1:] @ vectors[0]
    supporting = {place for places in claim.supporting_sentences for place in places}

    def worth(window: range) -> tuple[int, float]:
        nearest = np.sort(similarity[window])[-NEAREST:]
        return len(supporting.intersection(window)), float(nearest.sum())

    best = max(windows([len(sentence) for sentence in claim.evidence]), key=worth)
    return "\n".join(claim.evidence[place] for place in best)[:WINDOW]


def windows(lengths: Sequence[int]) -> list[range]:
    """Every longest run of sentences that stays within the window, at least one sentence each."""
    runs = []
    for begin in range(len(lengths)):
        end, size = begin, 0
        while end < len(lengths) and size + lengths[end] <= WINDOW:
            size += lengths[end] + 1
            end += 1
        runs.append(range(begin, max(end, begin + 1)))
        if end >= len(lengths):
            break
    return runs


def evaluate(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the figures of checking every claim against its passage, and of finding that."""
    passages = [passage(claim) for claim in claims]
    statuses = [support(each.claim, text) for each, text in zip(claims, passages, strict=True)]
    return figures(claims, statuses) | {"attribution": attribution(claims, passages)}


def attribution(claims: Sequence[Claim], passages: Sequence[str]) -> dict[str, float]:
    """Return how often a supported claim is given the marker of its passage.

    Beside BESIDE others that share no sentence with it, of the same article as far as it goes, then
    those of the claims that follow. `right` and `another` are shares of the claims without a
    marker, `any` where the right passage is missing; `put_right` is the share of those marked with
    another that get the right one, and `changed` of those rightly marked that lose it.
    """
    found: dict[str, list[bool]] = {}
    for place, (claim, right) in enumerate(zip(claims, passages, strict=True)):
        if claim.label != SUPPORTED:
            continue
        others = list(
            dict.fromkeys(
                text
                for text in (*_pages(claim), *passages[place + 1 :], *passages[:place])
                if not set(text.splitlines()) & set(right.splitlines())
            )
        )[:BESIDE]
        nearness, without = Nearness(_marked([*others, right])), Nearness(_marked(others))
        marker = f"C{len(others) + 1}"
        source = nearness.source(claim.claim)
        cases = {
            "right": source == marker,
            "another": source not in {marker, ""},
            "any": bool(without.source(claim.claim)),
            "put_right": nearness.better_source(claim.claim, ["C1"]) == marker,
            "changed": bool(nearness.better_source(claim.claim, [marker])),
        }
        for name, is_so in cases.items():
            found.setdefault(name, []).append(is_so)
    return {name: sum(cases) / len(cases) for name, cases in found.items()}


def _pages(claim: Claim) -> Iterator[str]:
    """The evidence of a claim as passages, one after the other."""
    end = 0
    for run in windows([len(sentence) for sentence in claim.evidence]):
        if run.start >= end:
            end = run.stop
            yield "\n".join(claim.evidence[place] for place in run)[:WINDOW]


def _marked(texts: Sequence[str]) -> list[SourceReference]:
    blank: dict[str, Any] = {"title": "", "section": "", "source": "", "version": 1, "score": None}
    return [
        SourceReference(marker=f"C{number}", document_id="", chunk_id=number, text=text, **blank)
        for number, text in enumerate(texts, start=1)
    ]


def figures(claims: Sequence[Claim], statuses: Sequence[CitationStatus]) -> dict[str, Any]:
    """Compare: `verified` with what is supported, `unsupported` with what is not wholly so.

    `removed` is the share of the supported claims that an answer would lose.
    """
    supported = [claim.label == SUPPORTED for claim in claims]
    unsupported = [not true for true in supported]
    result: dict[str, Any] = {"claims": len(claims), "supported": sum(supported)}
    for name, truth in (("verified", supported), ("unsupported", unsupported)):
        verdicts = [status == name for status in statuses]
        result[name] = {"said": sum(verdicts)} | asdict(detection(verdicts, truth))
    lost = sum(
        true and status == "unsupported" for true, status in zip(supported, statuses, strict=True)
    )
    return result | {"removed": lost / sum(supported)}


def table(figures: dict[str, Any]) -> RenderableType:
    """Return a line for each of the two statuses, and how often passages are found."""
    rows = Table(
        "", "said", "precision", "recall",
        title=f"{figures['claims']} claims, {figures['supported']} of them supported; of these "
        f"{digits(figures['removed'])} would be removed",
        title_justify="left",
    )  # fmt: skip
    for name in ("verified", "unsupported"):
        row = figures[name]
        rows.add_row(name, str(row["said"]), digits(row["precision"]), digits(row["recall"]))
    found = figures["attribution"]
    return Group(
        rows,
        f"Without a marker get that of the right passage: {digits(found['right'])}, of another: "
        f"{digits(found['another'])}, of any where the right one is missing: "
        f"{digits(found['any'])}",
        f"Wrong markers that are put right: {digits(found['put_right'])}, right ones that are "
        f"changed: {digits(found['changed'])}",
    )
