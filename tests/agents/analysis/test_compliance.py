"""The compliance: what it gives."""

from agents.analysis.compliance import UNSHOWN, believed
from agents.analysis.shapes import Checklist, Judgement, Requirement, Verdict, Verdicts
from agents.contract import REGISTRY
from agents.names import Role


def test_without_a_model_it_says_that_it_needs_one() -> None:
    given = REGISTRY[Role.COMPLIANCE]({"canonical_question": "Does it meet the law?"})
    assert given["agent_outputs"]["compliance"]["reason"] == "model"
    assert given["is_incomplete"]


def requirement(name: str, *evidence: str) -> Requirement:
    return Requirement(
        id=name, requirement="Keep it.", source_section="1", severity="mandatory",
        applicability="all", target="Act", evidence=list(evidence),
    )  # fmt: skip


def judged(name: str, verdict: Verdict, *evidence: str) -> Judgement:
    return Judgement(
        requirement_id=name,
        verdict=verdict,
        explanation="so",
        confidence=1,
        evidence=list(evidence),
    )


def test_where_a_requirement_stands_shows_nothing_of_whether_it_is_met() -> None:
    names = ("REQ-001", "REQ-002", "REQ-003")
    checklist = Checklist(
        summary="", target="Act", requirements=[requirement(name, "p00000001") for name in names]
    )
    said = [
        judged("REQ-001", "violation", "p00000001"),
        judged("REQ-002", "compliant", "p00000001", "p00000002"),
    ]
    verdicts = Verdicts(summary="", verdicts=said, clashes=[])
    found = believed(verdicts, {Role.REQUIREMENT_EXTRACTOR: checklist}).verdicts
    assert [(each.requirement_id, each.verdict) for each in found] == [
        ("REQ-001", "gap"),
        ("REQ-002", "compliant"),
        ("REQ-003", "gap"),
    ]
    assert [each.evidence for each in found] == [[], ["p00000002"], []]
    assert found[0].explanation == UNSHOWN
