"""The table of failures: whatever fails at whichever prompt, the user gets what the page says.

With WRITE_FAILURES=1 in the environment and --every-moment the page is written instead of compared
with it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.failing import FAILURES, OUTCOMES, ask, outcome_of
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = Path(__file__).parent.parent.parent / "docs/failures.md"
ROW = "| "
Table = dict[str, dict[str, str]]  # by prompt, then by failure
# Of the failures at a prompt one in six is tried with every change, others at the next prompt.
SIXTH = 6


def shown() -> Table:
    """The table as the page has it."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == ROW]
    (_, *prompts), _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {prompt: {row[0]: row[place] for row in rows} for place, prompt in enumerate(prompts, 1)}


def write(table: Table) -> None:
    """Put the table in the place of the one that the page has."""
    before, *_ = PAGE.read_text(encoding="utf-8").partition(ROW)
    rows = [["failure", *OUTCOMES], ["---"] * (len(OUTCOMES) + 1)]
    rows += [
        [failure, *(table.get(prompt, {}).get(failure, "") for prompt in OUTCOMES)]
        for failure in FAILURES
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    PAGE.write_text(before + "\n".join(lines) + "\n", encoding="utf-8")


def cells() -> Iterator[Any]:
    """Each prompt with the failures tried with every change, and with the others."""
    for place, prompt in enumerate(OUTCOMES):
        some = list(FAILURES)[place % SIXTH :: SIXTH]
        others = [failure for failure in FAILURES if failure not in some]
        yield pytest.param(prompt, some, id=prompt)
        yield pytest.param(prompt, others, id=f"{prompt}-others", marks=pytest.mark.every_moment)


@pytest.mark.parametrize(("prompt", "failures"), list(cells()))
def test_no_failure_is_an_error_to_the_user_and_the_page_says_what_it_comes_to(
    sensible: Sensible, prompt: str, failures: list[str]
) -> None:
    # The first turn waits for what is loaded on first use.
    ask()
    outcomes = {failure: outcome_of(prompt, failure, sensible) for failure in failures}
    if os.environ.get("WRITE_FAILURES"):
        write(shown() | {prompt: shown().get(prompt, {}) | outcomes})
    said = {failure: shown()[prompt][failure] for failure in failures}
    assert said == outcomes, "write it again: WRITE_FAILURES=1, with --every-moment"


def test_the_page_shows_every_failure_at_every_prompt() -> None:
    assert list(shown()) == list(OUTCOMES)
    assert all(list(column) == list(FAILURES) for column in shown().values())
