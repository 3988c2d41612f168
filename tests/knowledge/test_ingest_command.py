"""The ingest command: says what became of every file, and fails when nothing did."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


def run(*arguments: object) -> str:
    out = StringIO()
    call_command("ingest", *map(str, arguments), stdout=out)
    return " ".join(out.getvalue().split())


def test_summary_counts_documents_and_groups_reasons(island: Path) -> None:
    (island / "empty.md").touch()
    (island / "plain.md").write_text("The harbour has no front matter.")
    (island / "picture.png").touch()
    said = run(island, "--collection", "island")
    assert "new │ 5 │" in said
    assert "Skipped, it is empty: island/empty.md" in said
    assert "Warning, no front matter: island/plain.md" in said
    assert "Passed over: 1 unknown format" in said


def test_second_run_says_all_unchanged(island: Path) -> None:
    run(island)
    assert "unchanged │ 4 │" in run(island)


@pytest.mark.parametrize(
    ("path", "collection", "message"),
    [
        ("missing", "island", "no such file or folder"),
        ("island", "Not A Slug", "cannot name a collection"),
    ],
)
def test_what_cannot_work_is_said_and_fails(
    island: Path, path: str, collection: str, message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        run(island.parent / path, "--collection", collection)


def test_run_in_which_nothing_was_readable_fails_after_saying_why(tmp_path: Path) -> None:
    (tmp_path / "empty.md").touch()
    with pytest.raises(CommandError, match="Nothing could be ingested"):
        run(tmp_path / "empty.md")
