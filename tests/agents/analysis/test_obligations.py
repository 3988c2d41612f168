"""Obligations: found by their wording, with what is near to each, and no verdict."""

from typing import Any

import pytest

from agents.analysis.obligations import Obligations, checklist
from agents.tools.tool import Caller
from knowledge.errors import UnknownCollection
from tests.agents.analysis.library import OLD, caller, document, shelve

pytestmark = pytest.mark.django_db

LAW = {
    "Leave": "Every employer shall grant 25 days of paid leave a year.",
    "Records": "Working hours must be recorded daily. Records may not be altered afterwards.",
    "Scope": "This law has three parts. An employer may grant more days.",
    "Noise": "Drivers of trams must not sound the bell at night.",
}
POLICY = {
    "Holidays": "Our employees have 28 days of paid leave in each year.",
    "Time": "Working hours are recorded every day in the time sheet.",
}


@pytest.fixture
def law() -> Any:
    document("Labour law", LAW, collection="law")
    document("Our policy", POLICY, collection="policies")


def listed(found: Obligations) -> dict[str, list[str]]:
    """The first passage for each requirement, by where it stands."""
    return {
        each.section: [found.evidence[match.evidence].section for match in each.matches]
        for each in found.obligations
    }


def test_duties_and_prohibitions_are_matched_with_the_other_collection(law: Any) -> None:
    found = checklist(
        Caller("", collections=("law",)), against=Caller("", collections=("policies",))
    )
    first, *_ = found.obligations
    assert [each.kind for each in found.obligations] == [
        "duty",
        "duty",
        "prohibition",
        "prohibition",
    ]
    assert (first.id, first.requirement, first.wording) == ("REQ-001", LAW["Leave"], "shall")
    assert listed(found)["Leave"][0] == "Holidays"
    assert listed(found)["Noise"] == []
    assert found.obligations[-1].certainty == "none"
    assert first.certainty in {"low", "medium", "high"}
    assert {first.evidence, first.matches[0].evidence} <= found.evidence.keys()


def test_there_is_no_word_of_a_verdict_in_it(law: Any) -> None:
    found = checklist(
        Caller("", collections=("law",)), against=Caller("", collections=("policies",))
    )
    words = found.model_dump_json().lower()
    assert not [each for each in ("compliant", "violation", "verdict") if each in words]


def test_a_question_is_answered_by_what_its_passages_prescribe(law: Any) -> None:
    reader = Caller("", collections=("law", "policies"))
    found = checklist(reader, question="How many days of paid leave must an employer grant?")
    assert found.obligations[0].requirement == LAW["Leave"]
    # An obligation is not borne out by the document it stands in.
    titles = {found.evidence[m.evidence].title for each in found.obligations for m in each.matches}
    assert titles == {"Our policy"}


def test_permissions_are_listed_when_asked_for_and_the_rest_is_counted(law: Any) -> None:
    reader = Caller("", collections=("law",))
    allowed = checklist(reader, kinds=["permission"])
    assert [each.section for each in allowed.obligations] == ["Scope"]
    few = checklist(reader, limit=1)
    assert (len(few.obligations), few.left_out, few.passages) == (1, 3, 4)
    # There is no other document to look into.
    assert few.obligations[0].matches == []


def test_nobody_reads_what_they_may_not_see() -> None:
    shelve()
    document("Staff rules", {"Keys": "Keys must be returned."}, collection="contracts",
             audience="staff")  # fmt: skip
    guests = checklist(caller(audience="guests"))
    assert {each.document for each in guests.obligations} == {"Old agreement"}
    assert OLD["Proofs"] in {each.requirement for each in guests.obligations}
    assert "Staff rules" in {each.document for each in checklist(caller()).obligations}
    with pytest.raises(UnknownCollection):
        checklist(Caller("", collections=("gone",)), question="What must I do?")


def test_a_language_whose_wordings_are_not_known_is_named() -> None:
    document("Lag", {"Plikt": "Arbeidsgiveren skal gi ferie."}, collection="law", language="nb")
    found = checklist(Caller("", collections=("law",)))
    assert (found.obligations, found.unread_languages) == ([], ["nb"])
