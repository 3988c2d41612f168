"""Comparison tools: what two documents share, how things are related, what a term means."""

from datetime import date
from typing import Any

import pytest

from agents.names import Role
from agents.tools.tool import RefusedArguments
from knowledge.graph import Graph, NamedEntity, StatedRelation, write
from knowledge.models import Chunk, ChunkVector, Document
from tests.agents.analysis.library import NEW, OLD, caller, document, shelve, turn, use

pytestmark = pytest.mark.django_db
PRESS, AUTHOR = NamedEntity("Press", "organisation"), NamedEntity("Author", "person")


@pytest.fixture
def shelf() -> tuple[Document, Document]:
    return shelve()


def place(finding: Any) -> dict[str, str]:
    """Where each passage of a result stands, by its id."""
    return {e["id"]: f"{e['title']} > {e['section']}" for e in finding.value["passages"]}


def related(owner: Document, begin: date | None, end: date | None, part: int = 1) -> None:
    chunks = list(Chunk.objects.filter(document=owner).order_by("number"))
    relation = StatedRelation("Press", "pays", "Author", part, begin, end)
    write(owner, chunks, Graph((PRESS, AUTHOR), (relation,)))


def test_what_two_documents_share_is_paired_and_the_rest_is_named(shelf: Any) -> None:
    found = use("compare_documents", caller(), first="Old agreement", second=shelf[1].pk)
    where = place(found)
    pairs = [(where[each["first"]], where[each["second"]]) for each in found.value["pairs"]]
    assert ("Old agreement > Payment", "New agreement > Payment") in pairs
    assert [where[each] for each in found.value["only_in_first"]] == ["Old agreement > Proofs"]
    assert [where[each] for each in found.value["only_in_second"]] == ["New agreement > Audio"]
    assert all(0.5 <= each["similarity"] <= 1 for each in found.value["pairs"])


def test_a_comparison_about_something_begins_with_it(shelf: Any) -> None:
    about = {"about": "what the word royalty means", "limit": 1}
    found = use("compare_documents", caller(), first="Old agreement", second="New agreement",
                **about)  # fmt: skip
    assert [*place(found).values()][:2] == [
        "Old agreement > Definitions", "New agreement > Definitions"
    ]  # fmt: skip
    assert found.value["pairs_left_out"] == 1


def test_the_same_words_in_both_are_told(shelf: Any) -> None:
    document("Copy", OLD, collection="contracts")
    found = use("compare_documents", caller(), first="Old agreement", second="Copy")
    assert [each["same_words"] for each in found.value["pairs"]] == [True] * len(OLD)
    assert found.value["only_in_first"] == found.value["only_in_second"] == []


def test_what_cannot_be_compared_is_said(shelf: Any) -> None:
    old, _ = shelf
    with pytest.raises(RefusedArguments, match="name two"):
        use("compare_documents", caller(), first="Old agreement", second=old.pk)
    with pytest.raises(RefusedArguments, match="no document 'House rules' here"):
        use("compare_documents", caller(), first="Old agreement", second="House rules")
    ChunkVector.objects.filter(chunk__document=old).update(model="other@own")
    with pytest.raises(RefusedArguments, match="no vectors of the same model"):
        use("compare_documents", caller(), first="Old agreement", second="New agreement")


def test_relations_come_with_the_passage_that_states_them_and_their_time(shelf: Any) -> None:
    related(shelf[0], date(2020, 1, 1), date(2024, 12, 31))
    related(shelf[1], date(2025, 1, 1), None)
    role = caller(role=Role.COMPLIANCE)
    found = use("graph_search", role, query="What does the press owe?")
    assert [each["from"] for each in found.value["relations"]] == ["2025-01-01", "2020-01-01"]
    assert {*place(found).values()} == {"Old agreement > Payment", "New agreement > Payment"}
    then = use("graph_search", role, query="press", at="2022-02-02")
    assert [each["to"] for each in then.value["relations"]] == ["2024-12-31"]
    assert use("graph_search", role, query="harbour").is_empty
    with pytest.raises(RefusedArguments, match="no day 2022-02-30"):
        use("graph_search", role, query="press", at="2022-02-30")


def test_relations_of_documents_that_are_for_others_are_not_found(shelf: Any) -> None:
    related(Document.objects.get(title="Kitchen rules"), None, None, part=0)
    assert use("graph_search", caller(audience="guests"), query="press").is_empty
    assert use("graph_search", caller(languages=("cs",)), query="press").is_empty
    assert use("graph_search", caller(collections=("house",)), query="press").is_empty
    assert not use("graph_search", caller(audience="staff"), query="press").is_empty


def test_a_term_is_aligned_over_the_documents_that_define_it(shelf: Any) -> None:
    found = use("definition_aligner", caller(), term="royalties")
    wordings = {each["document"]: each["wording"] for each in found.value["definitions"]}
    assert wordings == {
        "Old agreement": OLD["Definitions"], "New agreement": NEW["Definitions"]
    }  # fmt: skip
    assert 0 < found.value["are_alike"] < 0.95
    assert len(found.value["passages"]) == 2


def test_documents_that_use_a_term_and_define_it_nowhere_are_named(shelf: Any) -> None:
    found = use("definition_aligner", caller(), term="proofs")
    assert (found.value["definitions"], found.is_empty) == ([], True)
    assert found.value["used_without_definition"] == ["Old agreement"]


def test_a_statement_is_assessed_by_what_search_and_passages_say(shelf: Any) -> None:
    reader = caller(turn_id=turn(), role=Role.COMPLIANCE)
    found = use("search", reader, query=NEW["Payment"], limit=1)
    (passage,) = found.value["passages"]
    good = use("assess_confidence", reader, statement="Royalties are paid twice a year.",
               passages=[passage["id"]]).value  # fmt: skip
    assert good["support"] in {"medium", "high"}
    assert good["assessed"][0]["rank_in_search"] == 1
    assert good["not_named_by_passages"] == []
    bad = use("assess_confidence", reader, statement="Royalties of 250 EUR are paid in March.",
              passages=[passage["id"]]).value  # fmt: skip
    assert (bad["support"], "250" in bad["not_named_by_passages"]) == ("low", True)


def test_passages_that_no_tool_gave_support_nothing(shelf: Any) -> None:
    reader = caller(turn_id=turn(), role=Role.COMPLIANCE)
    with pytest.raises(RefusedArguments, match="No tool gave p00000000"):
        use("assess_confidence", reader, statement="Royalties are paid.", passages=["p00000000"])
