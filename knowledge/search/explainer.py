"""Explaining: puts together what a search thought, for those who ask why."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from django.conf import settings

from knowledge.search.explanation import Considered, Explanation, Standing
from knowledge.search.levels import WEIGHTS, Weighed, weigh
from knowledge.search.results import Candidate, load
from knowledge.search.scope import Scope
from knowledge.search.selection import Dropped, Selection
from knowledge.search.vector import Encoded


def explain(weighed: Weighed, selection: Selection, vectors: Encoded, scope: Scope) -> Explanation:
    """Return why each candidate is a result or none, best first.

    Where `scope` has filters, then what they kept out, for which the levels are asked once more.
    """
    dropped = selection.dropped(weighed, weighed.best())
    entries = considered(weighed, selection.results, dropped)
    if scope.condition:
        known = {each.chunk for each in weighed.parts}
        anywhere = weigh(weighed.wordings, vectors, scope.unfiltered(), {})
        others = considered(anywhere, [], {})
        entries += [
            replace(each, dropped="filter") for each in others if each.chunk_id not in known
        ]
    weights = {level: WEIGHTS[level] for level in weighed.levels}
    return Explanation(tuple(weighed.wordings), weights, tuple(entries))


def considered(weighed: Weighed, results: Sequence[int], why: Dropped) -> list[Considered]:
    """Return the candidates, best first, with what the levels say and what became of them."""
    chunks = [each.chunk for each in weighed.parts]
    found = load(chunks)
    cosines, standings = weighed.cosines(), standing(weighed)
    places = {place: number for number, place in enumerate(results, start=1)}
    read = [found[chunks[place]] for place in results if chunks[place] in found]
    unread = beyond_budget(read)
    entries = []
    for place in weighed.best():
        each = found.get(chunks[place])
        if each is None:
            continue
        dropped, by = why.get(place, (None, None))
        entries.append(
            Considered(
                chunk_id=each.chunk_id,
                document_id=each.document_id,
                title=each.title,
                section=each.section,
                source=each.place,
                text=each.text,
                standings=tuple(standings[place]),
                score=round(float(weighed.scores[place]), 6),
                cosine=cosines[place],
                place=places.get(place),
                dropped="budget" if each.chunk_id in unread else dropped,
                by=None if by is None else chunks[by],
            )
        )
    return entries


def standing(weighed: Weighed) -> list[list[Standing]]:
    """Return per candidate where each level puts it for each wording."""
    found: list[list[Standing]] = [[] for _ in weighed.parts]
    for level, rows in weighed.levels.items():
        # A chunk without any of the words has no place among those that have one.
        heard = rows > 0 if level == "keyword" else ~np.isnan(rows)
        for wording, scores in enumerate(rows):
            order = np.argsort(-np.where(heard[wording], scores, -np.inf), kind="stable")
            for rank, place in enumerate(order[: np.count_nonzero(heard[wording])], start=1):
                score = round(float(scores[place]), 4)
                found[place].append(Standing(level, wording, rank, score))
    return found


def beyond_budget(results: Sequence[Candidate]) -> set[int]:
    """Return the results that no longer fit into MAX_CONTEXT_LENGTH characters, as agents read."""
    left = settings.MAX_CONTEXT_LENGTH
    beyond = set()
    for place, each in enumerate(results):
        heading = " > ".join(part for part in (each.title, each.section) if part)
        length = len(each.text) + len(heading)
        if length <= left:
            left -= length
        elif place:
            beyond.add(each.chunk_id)
        else:
            left = 0  # The first is cut instead.
    return beyond
