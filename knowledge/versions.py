"""Versions: what a document says and said before, what changed, and who relied on it."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Literal

from knowledge.models import Document, Reliance, Version


def versions(document: Document) -> list[Version]:
    """Return all that are kept, the latest first, without their texts."""
    return [latest(document), *document.versions.defer("content")]


def version(document: Document, number: int) -> Version:
    """Return one with its text. Raises Version.DoesNotExist when it is not kept."""
    if number == document.version:
        return latest(document)
    return document.versions.get(number=number)


def latest(document: Document) -> Version:
    """Return what the document says now, which is stored as no Version, in the shape of one."""
    return Version(
        document=document,
        number=document.version,
        edition=document.edition,
        title=document.title,
        content=document.content,
        sha1=document.sha1,
        created=document.updated,
    )


def replacement_time(version: Version) -> datetime | None:
    """Return when the next version took its place; None for the latest."""
    return None if version.number == version.document.version else version.replaced


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
    head = common_prefix_length(old, new)
    tail = common_prefix_length(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > LINES_COMPARED:
        raise TooLong
    # What both begin and end with needs no comparing, save for the lines to be shown.
    begin, end = max(head - CONTEXT, 0), max(tail - CONTEXT, 0)
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    return list(diff_lines(old, new, cut_before=begin > 0, cut_after=end > 0))


def common_prefix_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def diff_lines(
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


def record_citations(turn: uuid.UUID, citations: Iterable[Mapping[str, Any]]) -> None:
    """Note the documents an answer cites, in the caller's transaction; twice is once."""
    cited = {(each["document_id"], each["version"]) for each in citations}
    Reliance.objects.bulk_create(
        [Reliance(turn=turn, document=document, version=version) for document, version in cited],
        ignore_conflicts=True,
    )


def forget_turns(turns: Iterable[uuid.UUID]) -> int:
    """Delete what is known of these turns; return how many rows."""
    return Reliance.objects.filter(turn__in=list(turns)).delete()[0]


def turns_citing(documents: Iterable[str]) -> list[uuid.UUID]:
    """Return the turns whose answers cited any version of the documents with these ids."""
    reliances = Reliance.objects.filter(document__in=list(documents)).order_by("turn")
    return list(reliances.values_list("turn", flat=True).distinct())


def answers_citing(document: Document) -> list[Reliance]:
    """Return the answers that cite a document, the latest first.

    Those whose `version` is below the document's own may be outdated.
    """
    return list(Reliance.objects.filter(document=document.pk).order_by("-created", "pk"))
