"""Follow-ups in nine languages: what essence makes of them without a model, row by row.

`followups.json` holds small handbooks and what users say after a question. A row that does not
come out as expected says in `today` how it does come out, and fails when that changes.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.intake.essence import distil
from knowledge import ingestion
from knowledge.search import search

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "followups.json").read_text(encoding="utf-8")
)
LANGUAGES = {"en", "de", "es", "fr", "ru", "zh", "it", "nl", "pt"}


def handbook(language: str, folder: Path) -> str:
    """Take the handbook of a language in; return its collection."""
    for number, page in enumerate(DATA["documents"][language]):
        text = f"---\ntitle: {page['title']}\n---\n\n# {page['title']}\n\n{page['content']}\n"
        (folder / f"{number}.md").write_text(text, encoding="utf-8")
    ingestion.ingest(ingestion.find([folder]), collection=language)
    return language


def outcome(row: dict[str, Any], collection: str) -> dict[str, str]:
    """Return how the message was taken, and the page that search finds best."""
    remarks = [("user", row["before"]), ("assistant", "…")]
    payload: dict[str, Any] = {
        "text": row["message"],
        "text_eng": row["message"],
        "history": [
            {"role": role, "text": text, "time": "2026-11-21T12:00:00Z"} for role, text in remarks
        ],
        "collections": [collection],
    }
    if row.get("open"):
        payload["open_clarification"] = {"question": row["before"], "reason": "missing_context"}
    writes = distil(payload)
    if writes.get("clarification_result") == "exit" or writes.get("small_talk") == "thanks":
        return {"taken": "exit"}
    results = search(writes["canonical_question"], collections=[collection])
    return {"taken": writes["context_type"], "document": results.passages[0].title}


def test_there_are_22_in_nine_languages() -> None:
    assert len(DATA["followups"]) == 22
    assert {row["language"] for row in DATA["followups"]} == LANGUAGES


@pytest.mark.django_db
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_each_comes_out_as_the_file_says(language: str, tmp_path: Path) -> None:
    collection = handbook(language, tmp_path)
    rows = [row for row in DATA["followups"] if row["language"] == language]
    outcomes = {row["message"]: outcome(row, collection) for row in rows}
    assert outcomes == {row["message"]: row.get("today", row["expected"]) for row in rows}
