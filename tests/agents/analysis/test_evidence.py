"""Evidence: ids of passages, what tools gave, and what a text may cite of it."""

import itertools
from typing import Any

from agents.analysis.evidence import (
    PASSAGES,
    evidence_id,
    merged,
    named,
    named_in,
    of_passage,
    of_runs,
    references,
    with_markers,
)
from agents.analysis.shapes import Evidence
from agents.documentation.citations.check import check
from agents.models import ToolRun
from agents.tools.tool import ToolOutcome
from knowledge.search import Passage


def passage(chunk: int, text: str = "Keep the kettle full.", cosine: float | None = 0.5) -> Passage:
    return Passage(
        chunk_id=chunk,
        document_id="d" * 32,
        version=2,
        edition="2026",
        title="Kettles",
        section="Water > Level",
        crumbs=["Kitchen"],
        source="kettle.md",
        language="en",
        text=text,
        score=1.4,
        cosine=cosine,
    )


def run(*given: Evidence, outcome: ToolOutcome = ToolOutcome.OK) -> ToolRun:
    result = {PASSAGES: [each.model_dump() for each in given]}
    return ToolRun(tool="search", outcome=outcome, result=result)


def test_an_id_depends_on_the_passage_and_its_version_alone() -> None:
    near, far = of_passage(passage(7, cosine=0.9)), of_passage(passage(7, cosine=0.1))
    assert near.id == far.id == evidence_id(7, 2)
    assert len({near.id, evidence_id(7, 3), evidence_id(72, 2), evidence_id(8, 2)}) == 4


def test_of_a_passage_that_was_found_twice_the_higher_score_stays_in_any_order() -> None:
    given = [of_passage(passage(7, cosine=cosine)) for cosine in (None, 0.2, 1.01)]
    for order in itertools.permutations(given):
        (one,) = of_runs(map(run, order)).values()
        assert one.score == 1.0
    left, right = {each.id: each for each in given[:1]}, {each.id: each for each in given[1:2]}
    assert merged(left, right) == merged(right, left)


def test_what_failed_or_gave_no_passages_is_no_evidence() -> None:
    given = of_passage(passage(7))
    assert of_runs([run(given, outcome=ToolOutcome.TIMEOUT)]) == {}
    results: tuple[Any, ...] = ([], "none", {"rows": 2}, None)
    for result in results:
        assert of_runs([ToolRun(outcome=ToolOutcome.OK, result=result)]) == {}


def test_ids_that_no_tool_gave_are_told_from_the_others() -> None:
    one, other = of_passage(passage(7)), of_passage(passage(8))
    given = {one.id: one, other.id: other}
    found = named([other.id, f"[{one.id}]", "p00000000", other.id], given)
    assert (found.known, found.invented) == ([other.id, one.id], ["p00000000"])
    assert named_in(f"Full {one.id}, not p0000000g or p00000000.", given).invented == ["p00000000"]


def test_an_answer_that_names_passages_by_id_is_checked_like_any_other() -> None:
    one, other = of_passage(passage(7)), of_passage(passage(8, "Descale it every month."))
    answer = f"Keep the kettle full. [{one.id}; {other.id}] Fill it with 12 l. [p00000000]"
    marked = with_markers(answer, [one, other])
    assert marked.startswith("Keep the kettle full. [C1][C2] Fill")
    checked = check(marked, references([one, other]), "How full is the kettle?")
    assert [(each.marker, each.citation_status) for each in checked.citations] == [
        ("C1", "verified")
    ]
    assert checked.removed == ["Fill it with 12 l."]
