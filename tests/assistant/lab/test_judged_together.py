"""Evaluation together: two runs of the same folder take its passages in once, in turn."""

import json
import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from django.db import connection
from pytest_django import Settings

from assistant.lab.judged_data import JudgedCollection, JudgedFolder, read_folder, take_in
from knowledge import ingestion
from knowledge.models import Document

# Two threads see each other's rows.
pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 3


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> JudgedFolder:
    """A judged folder of three passages."""
    settings.STATE_DIR = tmp_path / "state"
    corpus = [{"id": f"p{n}", "title": "", "text": f"The ferry {n} sails."} for n in range(SIZE)]
    lines = "".join(f"{json.dumps(row)}\n" for row in corpus)
    (tmp_path / "corpus.jsonl").write_text(lines)
    (tmp_path / "queries.jsonl").write_text('{"id": "q1", "text": "When?"}\n')
    (tmp_path / "qrels.tsv").write_text("q1\tp1\t1\n")
    return read_folder(tmp_path)


class Listener(logging.Handler):
    """Notes that somebody was told to wait."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.event = Event()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message."""
        self.text = record.getMessage()
        self.event.set()


def test_a_second_run_says_that_it_waits_and_finds_the_passages_of_the_first(
    folder: JudgedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    logger = logging.getLogger("assistant.lab.judged_data")
    monkeypatch.setattr(logger, "handlers", [listener])

    def second() -> JudgedCollection:
        try:
            return take_in(folder)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:

        def work(job: uuid.UUID) -> None:
            later.append(pool.submit(second))
            assert listener.event.wait(30)
            ingestion.run(job)

        later: list[object] = []
        first = take_in(folder, work=work)
        (future,) = later
        other = future.result(30)  # type: ignore[attr-defined]
    assert listener.text == f"another run is taking in {first.name}; this one waits for it"
    assert (first.added, other.added, other.unfindable) == (SIZE, 0, 0)
    assert Document.objects.count() == SIZE


def test_what_a_worker_may_be_reading_is_never_there_in_part(
    folder: JudgedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[bool] = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        whole.append(len(json.loads(self.read_text())) == SIZE and not Path(target).exists())
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    take_in(folder)
    assert whole == [True]
