"""Side by side: which tests are divided among processes, and what is said while they run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings

from assistant.management.commands.test import MOST_AT_ONCE, environment, side_by_side
from tests.progress import LINES, Progress
from tests.scheduling import DOCENTS, E2E, group

FILE = "tests/assistant/test_side_by_side.py"


@pytest.mark.parametrize("words", [[], ["tests/knowledge"], ["-q", "--durations=5"], ["-x", "-q"]])
def test_all_tests_and_those_of_a_folder_run_side_by_side(words: list[str]) -> None:
    option, number, *_ = side_by_side(words)
    assert option == "-n"
    assert 1 < int(number) <= MOST_AT_ONCE


def test_every_file_of_end_to_end_tests_says_which_docent_it_asks() -> None:
    assert {path.stem for path in (settings.BASE_DIR / E2E).glob("test_*.py")} == {*DOCENTS}


def test_one_process_takes_the_tests_of_a_docent_and_others_go_one_by_one() -> None:
    rules = group("tests/e2e/test_answers.py::test_a")
    assert group("tests/e2e/test_refusals.py::test_b[x@y]") == rules
    assert group("tests/e2e/test_scenarios.py::test_a") != rules
    assert group("tests/agents/intake/test_lang.py::test_a") != group(
        "tests/agents/test_lang.py::test_b"
    )


@pytest.mark.parametrize(
    "words", [[FILE], [f"{FILE}::test_x"], ["-k", "fog"], ["-n4"], ["-n", "0"], ["--dist=load"],
              ["--pdb"], ["-s"], ["tests/knowledge", FILE]]
)  # fmt: skip
def test_few_tests_and_what_the_caller_decides_run_as_they_are_given(words: list[str]) -> None:
    assert side_by_side(words) == []


def test_modules_stay_compiled_where_writing_beside_the_source_is_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path))
    assert environment()["PYTHONPYCACHEPREFIX"] == str(tmp_path)
    assert "PYTHONDONTWRITEBYTECODE" not in environment()
    monkeypatch.setattr("sys.pycache_prefix", None)
    assert "PYTHONDONTWRITEBYTECODE" in environment()


class Lines(Progress):
    """Progress that is kept."""

    def __init__(self, tests: int) -> None:
        super().__init__(SimpleNamespace())  # type: ignore[arg-type]
        self.said: list[str] = []
        self.all = tests

    def say(self, line: str) -> None:
        self.said.append(line)


def report(when: str, outcome: str = "passed") -> Any:
    return SimpleNamespace(
        nodeid="a.py::test", when=when, passed=outcome == "passed", failed=outcome == "failed"
    )


@pytest.mark.parametrize("tests", [1, 7, LINES, 333])
def test_there_is_a_line_for_every_twentieth_and_one_for_the_last(tests: int) -> None:
    progress = Lines(tests)
    for _ in range(tests):
        for when in ("setup", "call", "teardown"):
            progress.pytest_runtest_logreport(report(when))
    assert len(progress.said) == min(tests, LINES)
    assert f"100 %  {tests} of {tests} tests, 0 failed" in progress.said[-1]


def test_a_failure_is_said_at_once() -> None:
    progress = Lines(100)
    progress.pytest_runtest_logreport(report("call", "failed"))
    assert progress.said == ["FAILED a.py::test (call)"]
    assert ", 1 failed," in progress.so_far()
