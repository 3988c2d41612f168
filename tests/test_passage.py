"""Passage: the files that somebody follows who reads what happens to one question, or one page.

`python3 manage.py test tests/test_passage.py -s` prints them.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from knowledge import ingestion
from knowledge.models import Chunk
from knowledge.parsing.dispatch import parse
from knowledge.parsing.outline import block_starts
from tests.agents.turning import turn

ROOT = Path(__file__).parent.parent
PACKAGES = ("assistant", "conversations", "agents", "knowledge", "prompts")
# More than a reader can keep in mind; each file that is added is a reason to ask where it belongs.
MOST_OF_QUESTION, MOST_OF_PAGE = 62, 43
PAGE = """# Teapots

A teapot holds a litre of tea. Its lid is held by a chain.

## Cleaning

Rinse the teapot with hot water and leave it open until it is dry. Soap spoils the taste.

## Guarantee

The guarantee covers the handle for ten years. The lid is covered for two years only.
"""
pytestmark = pytest.mark.django_db(transaction=True)


def passed(work: Callable[[], object]) -> tuple[set[str], int]:
    """Return the files of ours whose functions `work` calls, and how many functions that is."""
    codes = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    ours = {
        (path.relative_to(ROOT), code.co_qualname)
        for code in codes
        if (path := Path(code.co_filename)).is_relative_to(ROOT)
        and path.relative_to(ROOT).parts[0] in PACKAGES
        # What runs while a module is imported is nobody's way through it.
        and code.co_name != "<module>"
    }
    return {str(path) for path, _ in ours}, len(ours)


def ingested(tmp_path: Path) -> Path:
    page = tmp_path / "teapots.md"
    page.write_text(PAGE, encoding="utf-8")
    return page


def test_a_question_passes_few_files(tmp_path: Path) -> None:
    ingestion.ingest(ingestion.find([ingested(tmp_path)]), collection="tea")
    question = "How long does the guarantee cover the lid?"
    turn(question, collections=["tea"])  # loads what is loaded once
    block_starts.cache_clear()  # of other questions other places are read
    files, functions = passed(lambda: turn(question + " Please tell.", collections=["tea"]))
    print(f"\na question: {len(files)} files, {functions} functions", *sorted(files), sep="\n  ")  # noqa: T201 shown by -s
    assert len(files) <= MOST_OF_QUESTION


def test_an_ingested_page_passes_few_files(tmp_path: Path) -> None:
    page = ingested(tmp_path)

    def work() -> None:
        parse(page.name, page.read_bytes())
        ingestion.ingest(ingestion.find([page]), collection="tea")

    work()
    Chunk.objects.all().delete()
    page.write_text(PAGE.replace("ten", "twelve"), encoding="utf-8")
    files, functions = passed(work)
    print(f"\na page: {len(files)} files, {functions} functions", *sorted(files), sep="\n  ")  # noqa: T201 shown by -s
    assert len(files) <= MOST_OF_PAGE
