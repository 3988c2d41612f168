"""The ingest bench measures what it says; how fast that is is nobody's promise here."""

import sys
from pathlib import Path

import pytest

from assistant.lab import bench_ingest
from assistant.lab.rival import NotComparable
from knowledge.models import Chunk, Collection

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_stage_and_both_runs_are_timed_over_the_same_chunks(island: Path) -> None:
    progress: list[str] = []
    figures = bench_ingest.measure(island, progress.append)
    assert (figures["documents"], figures["skipped"]) == (4, 0)
    for name in (bench_ingest.STAGED, bench_ingest.WHOLE):
        collection = Collection.objects.get(name=name)
        assert collection.documents.count() == 4
        assert Chunk.objects.filter(document__collection=collection).count() == figures["chunks"]
    assert set(figures["stages"]) == {"parse", "chunk", "embed", "store"}
    assert sum(stage["share"] for stage in figures["stages"].values()) == pytest.approx(1, abs=0.01)
    assert figures["first"]["chunks_per_s"] > 0
    assert figures["unchanged"]["times_faster"] > 0
    assert figures["encoder"]["ratio"] > 0
    assert "as a whole: unchanged run" in progress


def test_what_cannot_be_read_is_counted(island: Path) -> None:
    (island / "empty.md").write_text("")
    assert bench_ingest.measure(island, lambda text: None)["skipped"] == 1


@pytest.mark.parametrize(
    ("python", "why"),
    [
        ("/nowhere/python", "cannot run the comparison: .*No such file"),
        (sys.executable, "could not compare: .*No module named 'langchain"),
    ],
    ids=["nowhere", "without it"],
)
def test_a_python_without_langchain_is_refused(island: Path, python: str, why: str) -> None:
    with pytest.raises(NotComparable, match=f"(?s){python} {why}"):
        bench_ingest.measure(island, lambda text: None, langchain_python=python)
