"""Checks of the prompts: a wrong one stops Docent at its start, with its name and the reason."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from pytest_django.fixtures import Settings

from assistant.management.commands import serve, up, workers
from prompts.checks import checked_files
from prompts.prompt import DECLARED
from prompts.texts import FOLDER

FRONT = "---\nvariables: {{{declared}}}\nsamples: {{{samples}}}\n---\n"


@pytest.fixture
def own(tmp_path: Path, settings: Settings) -> Path:
    """PROMPTS_DIR, empty."""
    settings.PROMPTS_DIR = str(tmp_path)
    return tmp_path


def problem() -> str:
    """The one thing that is wrong."""
    (problem_file,) = [each for each in checked_files() if each.problem]
    return problem_file.problem


def written(name: str = "evaluator", **variables: str) -> str:
    declared = ", ".join(f"{each}: data" for each in variables)
    samples = ", ".join(f"{each}: {sample}" for each, sample in variables.items())
    uses = " ".join(f"{{{{ {each} }}}}" for each in variables)
    front = FRONT.format(declared=declared, samples=samples)
    return f"{front}# {name}\n\nJudge.\n\n<!-- user -->\n{uses}\n"


def test_every_prompt_of_docent_is_declared_and_renders() -> None:
    files = list(checked_files())
    assert [f"{each.name}: {each.problem}" for each in files if each.problem] == []
    assert {each.name for each in files} == set(DECLARED)
    assert all(each.tokens > 0 for each in files)


def test_a_prompt_of_ones_own_takes_part(own: Path) -> None:
    given = {"question": "What?", "wishes": "brief", "tried": "one", "languages": "German"}
    (own / "evaluator.md").write_text(written(**given, passages="[One., Two.]"))
    mine = next(checked_files())
    assert mine.path.parent == own
    assert mine.rendered is not None
    assert "One." in mine.rendered.messages[1]["content"]
    assert [each.problem for each in checked_files() if each.problem] == []


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("evaluator", written(question="What?"), "file and code differ in: languages, passages, "),
        ("evaluator", "no user message", "needs one line `<!-- user -->`"),
        ("evaluator", "---\n: [\n---\n", "is not YAML"),
        ("evaluator", written("other", question="a", passages="b"), "must begin with the line"),
        ("evaluator", written(question="{a: 1}", passages="b"), "sample of question holds"),
        ("evaluater", written("evaluater", question="a"), "nothing uses a prompt evaluater"),
    ],
)
def test_a_wrong_prompt_is_named_with_the_reason(
    own: Path, name: str, text: str, reason: str
) -> None:
    (own / f"{name}.md").write_text(text)
    assert reason in problem()


def test_bytes_that_are_no_text_are_named(own: Path) -> None:
    (own / "evaluator.md").write_bytes(b"\xff\xfe\xfa")
    assert "utf-8" in problem()


def test_a_folder_that_cannot_be_read_is_named(own: Path) -> None:
    own.rmdir()
    assert problem() == "PROMPTS_DIR cannot be read: No such file or directory"


def test_a_declared_prompt_without_a_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DECLARED, "nobody", DECLARED["evaluator"])
    assert problem() == "there is no such file"


def test_a_readme_beside_the_prompts_does_not_matter(own: Path) -> None:
    (own / "README.md").write_text("How we write prompts.")
    assert [each for each in checked_files() if each.problem] == []


def test_a_wrong_prompt_stops_the_start_of_everything_that_would_use_it(own: Path) -> None:
    (own / "evaluator.md").write_text("nothing")
    for starts in (up, workers, serve):
        assert starts.Command.requires_system_checks == "__all__"
    with pytest.raises(
        SystemCheckError, match=r"evaluator\.md: \(prompts\.E001\) prompt evaluator"
    ):
        call_command("workers", skip_checks=False)


def test_the_command_says_which_prompts_are_wrong(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("prompts", "check")
    assert "OK" in capsys.readouterr().out
    (own / "evaluator.md").write_text("nothing")
    with pytest.raises(SystemExit, match="1"):
        call_command("prompts", "check")
    assert "evaluator" in capsys.readouterr().out


def test_a_prompt_is_shown_as_a_model_gets_it(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("prompts", "show", "evaluator")
    shown = capsys.readouterr().out
    assert "--- system ---\n# evaluator\n" in shown
    assert "How long does the battery of the T2 last?" in shown
    with pytest.raises(CommandError, match="There is no prompt 'evaluater'; there are: "):
        call_command("prompts", "show", "evaluater")


def test_the_check_leaves_the_prompts_as_they_were() -> None:
    before = DECLARED["evaluator"].text()
    list(checked_files())
    assert DECLARED["evaluator"].text() == before
    assert (FOLDER / "evaluator.md").is_file()
