"""Inquiry: `analyse` puts questions to documents, each by the route, and pays for none twice."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from agents.models import Envelope
from assistant.lab import scripted_analysis
from assistant.lab.scripted_analysis import ENGLISH
from knowledge import ingestion
from knowledge.models import Collection
from tests.agents.analysis.analysing import asked
from tests.agents.analysis.library import document, shelve
from tests.agents.conftest import sensible
from tests.sensible import Sensible

__all__ = ["sensible"]


@pytest.fixture
def law(sensible: Sensible, settings: Settings, tmp_path: Path) -> Path:
    """Models on the open route, an act in the collection `law`, and a folder with a policy."""
    settings.ROUTES = ["documentation", "analysis"]
    settings.MODELS = {
        asker: replace(choice, timeout=10.0, max_tokens=4000)
        for asker, choice in settings.MODELS.items()
    }
    for name, text in ENGLISH.pages().items():
        folder = tmp_path / ("Our policies" if name.startswith("Data") else "law")
        folder.mkdir()
        (folder / name).write_text(text, encoding="utf-8")
    ingestion.ingest(ingestion.find([tmp_path / "law"]), collection="law")
    for prompt, reply in scripted_analysis.replies(ENGLISH).items():
        sensible.says(prompt, reply)
    return tmp_path / "Our policies"


def analyse(subject: Any, report: Path, **options: Any) -> list[dict[str, Any]]:
    call_command("analyse", str(subject), report=report, **options)
    rows: list[dict[str, Any]] = json.loads(report.with_suffix(".json").read_text())
    return rows


@pytest.mark.django_db(transaction=True)
def test_a_folder_is_held_against_a_law_by_the_route_and_paid_once(
    law: Path, sensible: Sensible, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.md"
    (row,) = analyse(law, report, against="law")
    assert Collection.objects.get(name="analysis-our-policies").only_by_name
    assert (row["status"], row["verdict"], row["title"]) == (
        "completed",
        "violation",
        ENGLISH.policy,
    )
    assert [each["verdict"] for each in row["judged"]] == [each.verdict for each in ENGLISH.rules]
    turn = Envelope.objects.get(pk=row["turn"])
    assert turn.payload["route"] == "analysis"
    assert turn.memory["text"] == "Does “Data policy” comply with “Archive act”?"
    # The pages of other collections were out of its reach.
    assert {each["title"] for each in turn.payload["evidence"].values()} <= {
        ENGLISH.act,
        ENGLISH.policy,
    }
    text = report.read_text()
    rule = ENGLISH.rules[0]
    assert f"- **{rule.text}** ({rule.section}): Violation. As the policy says." in text
    assert f"  > {rule.words}" in text
    assert f"- {rule.text} [C1]" in text
    told = capsys.readouterr()
    assert "Our policies against law" in told.out
    assert "Questions: 1; about" in told.err
    # Gone on with: from its rows, and without these from its turns.
    calls = asked(sensible)
    for _ in range(2):
        assert analyse(law, report, against="law") == [row]
        report.with_suffix(".rows.jsonl").unlink()
    assert asked(sensible) == calls


@pytest.mark.django_db(transaction=True)
def test_questions_are_put_to_each_document_alone_and_failures_again(
    law: Path, sensible: Sensible, tmp_path: Path
) -> None:
    for prompt, reply in scripted_analysis.replies(ENGLISH, [["extractor"]]).items():
        sensible.says(prompt, reply)
    questions = tmp_path / "questions.txt"
    questions.write_text("Which duties are there?\n", encoding="utf-8")
    call_command("ingest", str(law), collection="both")
    call_command("ingest", str(law.parent / "law"), collection="both")
    rows = analyse("both", tmp_path / "report.md", questions=questions)
    assert [row["title"] for row in rows] == [ENGLISH.act, ENGLISH.policy]
    for row in rows:
        assert {each["title"] for each in row["evidence"]} == {row["title"]}
        assert row["verdict"] == ""
        assert row["answer"]
    Envelope.objects.filter(pk=rows[0]["turn"]).update(status="failed")
    (tmp_path / "report.rows.jsonl").unlink()
    again = analyse("both", tmp_path / "report.md", questions=questions, limit=1)
    assert again[0]["turn"] != rows[0]["turn"]
    assert again[1]["turn"] == rows[1]["turn"]


@pytest.mark.django_db
def test_without_a_model_the_nearest_passages_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shelve()
    document("Author law", {"Pay": "Every author must be paid in time."}, collection="law")
    questions, report = tmp_path / "questions.txt", tmp_path / "report.md"
    questions.write_text("Royalties are paid every day.\n\n", encoding="utf-8")
    rows = analyse("contracts", report, against="law", questions=questions)
    assert {row["title"] for row in rows} == {"Kitchen rules", "New agreement", "Old agreement"}
    assert {row["requirement"] for row in rows} == {
        "Royalties are paid every day.",
        "Every author must be paid in time.",
    }
    text = report.read_text()
    assert "From Author law > Pay." in text
    assert "Nobody judged this" in text
    assert "> The press shall pay the royalty within 30 days" in text
    told = capsys.readouterr()
    assert "surely near" in told.out
    assert "Nothing is judged" in told.err


@pytest.mark.django_db
def test_what_cannot_be_analysed_is_said(tmp_path: Path) -> None:
    shelve()
    report, none = tmp_path / "report.md", tmp_path / "none.txt"
    for subject, options, problem in (
        ("contracts", {}, "--questions FILE, or both"),
        ("contracts", {"questions": none}, "No such file"),
        ("contracts", {"against": "gone"}, "gone"),
        ("nowhere", {"against": "house"}, "nowhere"),
        ("contracts", {"against": "house"}, "worded as a duty"),
        ("contracts", {"against": "house", "at_once": 0}, "from 1 on"),
        ("contracts", {"against": "house", "report": tmp_path / "no" / "report.md"}, "no folder"),
    ):
        with pytest.raises(CommandError, match=problem):
            call_command("analyse", subject, **{"report": report, **options})
