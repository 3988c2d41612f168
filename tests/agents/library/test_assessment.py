"""Assessment: every document against every requirement, gone on with where it stopped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.library.assessment import (
    Batch,
    Cell,
    Judged,
    Made,
    Requirement,
    Row,
    UnusableBatch,
    by_rules,
    documents_in,
    requirements_of,
)
from tests.agents.analysis.library import shelve

pytestmark = pytest.mark.django_db

PAID = Requirement("The press pays the royalty after each quarter.")
HEATED = Requirement("The office is heated in winter.")


@pytest.fixture
def shelf() -> None:
    shelve()


def test_every_document_is_read_for_every_requirement_and_nobody_judges(
    shelf: None, tmp_path: Path
) -> None:
    documents = documents_in("contracts")
    rows = Batch(tmp_path / "rows.jsonl", by_rules).run([PAID, HEATED], documents)
    assert len(rows) == 2 * len(documents)
    first = next(row for row in rows if row.title == "Old agreement")
    assert first.evidence[0].section == "Payment"
    assert {each.title for each in first.evidence} == {"Old agreement"}
    assert {row.verdict for row in rows} == {""}


def test_what_is_there_already_is_not_done_again_and_failures_are(
    shelf: None, tmp_path: Path
) -> None:
    asked: list[str] = []
    failing = {HEATED.text}

    def judge(cells: Sequence[Cell]) -> Made:
        for cell in cells:
            asked.append(cell.requirement.text)
            judged = [Judged(requirement=cell.requirement.text, verdict="gap")]
            is_done = cell.requirement.text not in failing
            found = {"turn": "t", "status": "completed" if is_done else "failed", "judged": judged}
            yield cell.row().model_copy(update=found), is_done

    path, documents = tmp_path / "rows.jsonl", documents_in("contracts")[:1]
    first = Batch(path, judge, "m@p").run([PAID, HEATED, PAID], documents)
    assert [row.status for row in first] == ["completed", "failed"]
    failing.clear()
    # As a kill in the midst of a line leaves it.
    path.write_text(path.read_text() + '{"key": "ha', encoding="utf-8")
    second = Batch(path, judge, "m@p").run([PAID, HEATED], documents)
    assert asked == [PAID.text, HEATED.text, HEATED.text]
    assert [row.verdict for row in second] == ["gap", "gap"]
    Batch(path, judge, "m@p").run([PAID, HEATED], documents)
    assert len(asked) == 3
    Batch(path, judge, "other@p").run([PAID], documents)
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "0 lines"), (" \n\n", "0 lines"), ("x" * 1001, "1,001 characters")],
)
def test_a_file_of_questions_that_makes_no_sense_is_refused(
    text: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "questions.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnusableBatch, match=problem):
        requirements_of(file)


def test_rows_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("something else\n", encoding="utf-8")
    with pytest.raises(UnusableBatch, match="no rows of a batch"):
        Batch(rows, by_rules)


def test_of_several_verdicts_the_gravest_is_told() -> None:
    def judged(*verdicts: Any) -> list[Judged]:
        return [Judged(requirement="x", verdict=each) for each in verdicts]

    row = Row(key="k", requirement="x", document_id="d", title="t", version=1)
    for verdicts, gravest in (
        ((), ""),
        (("compliant", ""), "compliant"),
        (("compliant", "gap"), "gap"),
        (("gap", "violation", "compliant"), "violation"),
    ):
        assert row.model_copy(update={"judged": judged(*verdicts)}).verdict == gravest
