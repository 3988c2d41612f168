"""The ingest command: says what became of every file, and fails when nothing did."""

import re
from io import StringIO
from pathlib import Path
from typing import NoReturn

import pytest
from django.core.management import CommandError, call_command

from knowledge import ingestion
from knowledge.management import console
from knowledge.models import Document, Ingest

pytestmark = pytest.mark.django_db


def run(*arguments: object) -> str:
    out = StringIO()
    call_command("ingest", *map(str, arguments), stdout=out)
    return " ".join(out.getvalue().split())


def test_summary_counts_documents_and_groups_reasons(island: Path) -> None:
    (island / "empty.md").touch()
    (island / "plain.md").write_text("The harbour has no front matter.")
    (island / "picture.png").touch()
    output = run(island, "--collection", "island")
    assert "new │ 5 │" in output
    assert "Skipped, it is empty: island/empty.md" in output
    assert "Warning, no front matter: island/plain.md" in output
    assert "Passed over: 1 unknown format" in output


def test_without_a_terminal_lines_say_how_far_it_is(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "files/s" not in run(island)
    monkeypatch.setattr(console, "LINE_SECONDS", 0)
    assert re.search(r"4 of 4, [\d.]+ files/s, 0 s left: ", run(island, "--force"))


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


def job_id() -> str:
    return str(Ingest.objects.latest("created").pk)


def test_job_left_to_a_worker_is_queued_and_its_state_is_shown(island: Path) -> None:
    output = run(island, "--background")
    assert f"Queued as {job_id()}" in output
    assert Ingest.objects.get().status == "queued"
    assert "0/4" in run("--status")
    output = run("--status", job_id()[:8])
    assert "0 of 4" in output
    assert "seconds left │ unknown" in output


def test_same_command_goes_on_with_the_job_that_was_left(island: Path) -> None:
    run(island, "--background")
    assert "new │ 4 │" in run(island)
    assert Ingest.objects.get().status == "done"


def test_job_is_cancelled_and_tried_again_by_its_id(island: Path) -> None:
    run(island, "--background")
    assert "Cancelled" in run("--cancel", job_id())
    with pytest.raises(CommandError, match="has ended already"):
        run("--cancel", job_id())
    assert "new │ 4 │" in run("--retry", job_id())
    with pytest.raises(CommandError, match="Nothing of this job failed"):
        run("--retry", job_id())


def test_interrupted_command_says_how_to_go_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(console.Bar, "show", interrupt)
        with pytest.raises(CommandError, match="the same command goes on from here") as caught:
            run(island)
    assert caught.value.returncode == 130
    assert Ingest.objects.get().status == "cancelled"
    assert "new │ 4 │" in run(island)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Nothing to ingest was named"),
        (["--status", "no-such-id"], "There is no job 'no-such-id'"),
        (["ftp://example.com"], "no such file or folder"),
        (["https://user:secret@example.com"], "user name or password"),
    ],
)
def test_words_that_name_nothing_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*words)


def test_a_path_replaces_what_was_uploaded_under_its_name_only_when_told_to(
    tmp_path: Path,
) -> None:
    ingestion.run(ingestion.plan("island", uploads=[("fog.md", b"# Mine\n\nIt is foggy.")]).pk)
    path = tmp_path / "fog.md"
    path.write_text("# Theirs\n\nThe sun is shining.")
    with pytest.raises(CommandError, match="--replace"):
        run(path, "--collection", "island")
    assert Document.objects.get().title == "Mine"
    run(path, "--collection", "island", "--replace")
    assert Document.objects.get().title == "Theirs"
