"""Explainer: puts together what a search thought, for those who ask why."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from django.conf import settings

from knowledge.search.explanation import ConsideredChunk, Explanation, Standing
from knowledge.search.levels import WEIGHTS, Dropped, Selection, WeighedChunks, weigh
from knowledge.search.results import Candidate, load
from knowledge.search.scope import Scope
from knowledge.search.vector import WordingVectors


def explain(
    weighed: WeighedChunks, selection: Selection, vectors: WordingVectors, scope: Scope
) -> Explanation:
    """Return why each candidate is a result or none, best first.

    Where `scope` has filters, then what they kept out, for which the levels are asked once more.
    """
    dropped = selection.dropped(weighed, weighed.best())
    explanations = explain_candidates(weighed, selection.results, dropped)
    if scope.condition:
        chunks_in_scope = {each.chunk for each in weighed.parts}
        anywhere = weigh(weighed.wordings, vectors, scope.unfiltered(), {})
        others = explain_candidates(anywhere, [], {})
        explanations += [
            replace(each, dropped="filter")
            for each in others
            if each.chunk_id not in chunks_in_scope
        ]
    weights = {level: WEIGHTS[level] for level in weighed.levels}
    return Explanation(tuple(weighed.wordings), weights, tuple(explanations))


def explain_candidates(
    weighed: WeighedChunks, results: Sequence[int], why: Dropped
) -> list[ConsideredChunk]:
    """Return the candidates, best first, with what the levels say and what became of them."""
    chunks = [candidate.chunk for candidate in weighed.parts]
    candidates = load(chunks)
    cosines, standings_by_place = weighed.cosines(), standings(weighed)
    places = {place: number for number, place in enumerate(results, start=1)}
    results_read = [candidates[chunks[place]] for place in results if chunks[place] in candidates]
    unread = over_budget(results_read)
    entries = []
    for place in weighed.best():
        candidate = candidates.get(chunks[place])
        if candidate is None:
            continue
        dropped, by = why.get(place, (None, None))
        entries.append(
            ConsideredChunk(
                chunk_id=candidate.chunk_id,
                document_id=candidate.document_id,
                title=candidate.title,
                section=candidate.section,
                source=candidate.place,
                text=candidate.text,
                standings=tuple(standings_by_place[place]),
                score=round(float(weighed.scores[place]), 6),
                cosine=cosines[place],
                alignment=weighed.alignments.get(place),
                place=places.get(place),
                dropped="budget" if candidate.chunk_id in unread else dropped,
                by=None if by is None else chunks[by],
            )
        )
    return entries


def standings(weighed: WeighedChunks) -> list[list[Standing]]:
    """Return per candidate where each level puts it for each wording."""
    standings_by_place: list[list[Standing]] = [[] for _ in weighed.parts]
    for level, rows in weighed.levels.items():
        # A chunk without any of the words has no place among those that have one.
        is_known = rows > 0 if level == "keyword" else ~np.isnan(rows)
        for wording, scores in enumerate(rows):
            order = np.argsort(-np.where(is_known[wording], scores, -np.inf), kind="stable")
            for rank, place in enumerate(order[: np.count_nonzero(is_known[wording])], start=1):
                score = round(float(scores[place]), 4)
                standings_by_place[place].append(Standing(level, wording, rank, score))
    return standings_by_place


def over_budget(results: Sequence[Candidate]) -> set[int]:
    """Return the results that no longer fit into MAX_CONTEXT_LENGTH characters, as agents read."""
    left = settings.MAX_CONTEXT_LENGTH
    unread = set()
    for place, candidate in enumerate(results):
        heading = " > ".join(part for part in (candidate.title, candidate.section) if part)
        length = len(candidate.text) + len(heading)
        if length <= left:
            left -= length
        elif place:
            unread.add(candidate.chunk_id)
        else:
            left = 0  # The first is cut instead.
    return unread
