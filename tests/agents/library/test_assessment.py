"""Assessment: every document against every requirement, gone on with where it stopped."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents.library import verdict
from agents.library.assessment import (
    Batch,
    Requirement,
    UnusableBatch,
    documents_in,
    requirements_of,
)
from agents.library.verdict import Verdict
from tests.agents.analysis.library import document, shelve

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
    rows = Batch(tmp_path / "rows.jsonl").run([PAID, HEATED], documents)
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

    def judge(requirement: str, passages: Sequence[str]) -> Verdict | None:
        asked.append(requirement)
        if requirement in failing:
            return None
        return Verdict(verdict="Entailment", passages=[1], reason="so")

    path, documents = tmp_path / "rows.jsonl", documents_in("contracts")[:1]
    first = Batch(path, judge, "m@p").run([PAID, HEATED], documents)
    assert (first[0].verdict, first[0].named) == ("Entailment", [first[0].evidence[0].id])
    assert first[1].verdict == ""
    failing.clear()
    # As a kill in the midst of a line leaves it.
    path.write_text(path.read_text() + '{"key": "ha', encoding="utf-8")
    second = Batch(path, judge, "m@p").run([PAID, HEATED], documents)
    assert asked == [PAID.text, HEATED.text, HEATED.text]
    assert [row.verdict for row in second] == ["Entailment", "Entailment"]
    Batch(path, judge, "m@p").run([PAID, HEATED], documents)
    assert len(asked) == 3
    Batch(path, judge, "other@p").run([PAID], documents)
    assert len(asked) == 4


def test_a_report_has_a_table_quotations_and_json(
    shelf: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document("Author law", {"Pay": "Every author must be paid in time."}, collection="law")
    report = tmp_path / "report.md"
    call_command("analyse", "contracts", against="law", report=report)
    text = report.read_text()
    assert "### Every author must be paid in time." in text
    assert "From Author law > Pay." in text
    assert "Nobody judged this" in text
    assert "> The press shall pay the royalty within 30 days" in text
    rows = json.loads(report.with_suffix(".json").read_text())
    assert {row["title"] for row in rows} == {"Kitchen rules", "New agreement", "Old agreement"}
    assert "surely near" in capsys.readouterr().out


def test_with_a_model_the_report_has_its_verdicts(
    shelf: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    said = Verdict(verdict="Contradiction", passages=[1], reason="It is paid twice a year.")
    monkeypatch.setattr(verdict, "judged", lambda *_: said)
    monkeypatch.setattr(verdict, "model_name", lambda: "m@p")
    questions = tmp_path / "questions.txt"
    questions.write_text("Royalties are paid every day.\n\n", encoding="utf-8")
    report = tmp_path / "report.md"
    call_command("analyse", "contracts", questions=questions, report=report)
    assert "The document says otherwise. It is paid twice a year." in report.read_text()
    assert report.read_text().count("> p") == 3
    assert "otherwise" in capsys.readouterr().out


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


def test_what_cannot_be_analysed_is_said(shelf: None, tmp_path: Path) -> None:
    report, none = tmp_path / "report.md", tmp_path / "none.txt"
    for options, problem in (
        ({"questions": none}, "No such file"),
        ({"against": "gone"}, "gone"),
        ({"against": "house"}, "worded as a duty"),
        ({"against": "house", "report": tmp_path / "no" / "report.md"}, "no folder"),
    ):
        with pytest.raises(CommandError, match=problem):
            call_command("analyse", "contracts", **{"report": report, **options})
    rows = report.with_suffix(".rows.jsonl")
    rows.write_text("something else\n", encoding="utf-8")
    with pytest.raises(UnusableBatch, match="no rows of a batch"):
        Batch(rows)
