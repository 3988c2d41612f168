"""Evaluation: figures of the search that users have, on passages taken in once."""

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from assistant.lab import judged_data, retrieval, retrieval_chart
from assistant.lab.judged_data import Unjudgeable, read_folder, take_in
from knowledge import golden
from knowledge.calibration import calibrate, is_due, refresh
from knowledge.ingestion import cancel
from knowledge.models import Calibration, Collection, Document, GoldenQuestion
from knowledge.search import SearchResult, search

pytestmark = pytest.mark.django_db

ISLAND = {
    "ferry": "The night ferry leaves the harbour at nine in the evening and arrives at dawn.",
    "refund": "A cancelled booking is refunded to the card that it was paid with.",
    "bicycle": "Folding bicycles travel free of charge, a tandem costs twelve euros.",
    "keys": "The keeper of the lighthouse hands out the keys of the four rooms for guests.",
    "foghorn": "The foghorn sounds twice every thirty seconds when visibility is poor.",
    "breakfast": "Breakfast is served at seven in the lantern room of the lighthouse.",
}
QUESTIONS = {
    "q1": ("when does it leave?", "When does the night ferry leave?", "ferry"),
    "q2": ("money back?", "How do I get my money back for a cancelled booking?", "refund"),
    "q3": ("and a tandem?", "What does a tandem cost on the ferry?", "bicycle"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a judged folder of six passages."""
    root = tmp_path / "Island pages"
    root.mkdir()
    write(root / "corpus.jsonl", [{"id": k, "title": "", "text": v} for k, v in ISLAND.items()])
    write(
        root / "queries.jsonl",
        [
            {"id": key, "text": text, "rewrite": again}
            for key, (text, again, _) in QUESTIONS.items()
        ],
    )
    qrels = "".join(f"{key}\t{passage}\t1\n" for key, (*_, passage) in QUESTIONS.items())
    (root / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return root


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def run(*words: object) -> str:
    out = io.StringIO()
    call_command(*map(str, words), stdout=out)
    return out.getvalue()


@pytest.fixture
def island(folder: Path) -> Collection:
    """Return the passages as a collection."""
    return Collection.objects.get(name=take_in(read_folder(folder)).name)


def test_questions_are_asked_in_the_language_they_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    write(folder / "queries.jsonl", [row | {"language": "de"} for row in rows])
    spoken = set()

    def listening(*words: Any, **options: Any) -> SearchResult:
        spoken.add(options["spoken"])
        return search(*words, **options)

    monkeypatch.setattr(retrieval, "search", listening)
    run("evaluate", "retrieval", folder, "--json")
    assert spoken == {"de"}


def test_retrieval_is_measured_per_form_and_level(folder: Path) -> None:
    figures = json.loads(run("evaluate", "retrieval", folder, "--json"))
    assert list(figures) == ["text", "rewrite"]
    for levels in figures.values():
        assert list(levels) == ["keyword", "semantic", "hierarchical", "summary", "fused"]
        for values in levels.values():
            assert list(values) == ["ndcg@10", "recall@5", "recall@10", "mrr@10", "p50_ms"]
            assert all(0 <= values[metric] <= 1 for metric in retrieval.METRICS)
    assert figures["rewrite"]["fused"]["ndcg@10"] == 1.0
    assert figures["rewrite"]["fused"]["p50_ms"] > 0


def test_passages_are_taken_in_once_and_found_by_their_identifiers(folder: Path) -> None:
    data = read_folder(folder)
    collection = take_in(data)
    assert (collection.added, collection.unfindable) == (len(ISLAND), 0)
    assert collection.name == f"island-pages-{data.digest[:8]}"
    assert set(Document.objects.values_list("source", flat=True)) == set(ISLAND)
    assert set(collection.identifiers()) == set(Document.objects.values_list("pk", flat=True))
    before = set(Document.objects.values_list("pk", "updated", "version"))
    assert take_in(data).added == 0
    assert set(Document.objects.values_list("pk", "updated", "version")) == before


def test_interrupted_run_is_continued(folder: Path) -> None:
    collection = take_in(read_folder(folder))
    Document.objects.filter(source__in=("ferry", "keys")).delete()
    assert take_in(read_folder(folder)).added == 2
    assert Collection.objects.get(name=collection.name).documents.count() == len(ISLAND)


def test_passages_without_text_are_counted_and_keep_nothing_from_the_others(folder: Path) -> None:
    rows = [{"id": key, "text": text} for key, text in [("empty", "\n"), *ISLAND.items()]]
    write(folder / "corpus.jsonl", rows)
    collection = take_in(read_folder(folder))
    assert (collection.added, collection.unfindable) == (len(ISLAND), 1)
    assert "1 passages hold too little text" in run("evaluate", "retrieval", folder)


def test_passage_that_can_never_be_found_does_not_stop_the_next_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_data, "ROWS_AT_ONCE", 1)
    rows = [{"id": key, "text": text} for key, text in [*ISLAND.items(), ("dash", "-")]]
    write(folder / "corpus.jsonl", rows)
    assert take_in(read_folder(folder)).unfindable == 1
    assert take_in(read_folder(folder)).added == 0


@pytest.mark.parametrize("name", ["../elsewhere", "Upper", ""])
def test_name_of_the_collection_is_checked_before_anything_is_written(
    folder: Path, name: str, settings: Settings
) -> None:
    # Its own: other tests may keep collections in the common one at the same time.
    settings.STATE_DIR = folder.parent / "state"
    if name:
        with pytest.raises(CommandError, match="cannot name a collection"):
            run("evaluate", "retrieval", folder, "--collection", name)
    else:
        take_in(read_folder(folder))
    left = (Path(settings.STATE_DIR) / "evaluation").glob("*")
    assert [path.suffix for path in left] == ([] if name else [".lock"])
    assert not (Path(settings.STATE_DIR) / "elsewhere").exists()


def test_job_that_another_stopped_is_not_taken_for_done(folder: Path) -> None:
    with pytest.raises(Unjudgeable, match="was not taken in"):
        take_in(read_folder(folder), work=cancel)


def test_documents_count_once_at_their_best_rank() -> None:
    assert retrieval.named(["d1", "d2", "d1", "d3"], {"d1": "a", "d2": "b"}) == ["a", "b", "d3"]


def test_picture_holds_every_level_and_form(folder: Path, tmp_path: Path) -> None:
    run("evaluate", "retrieval", folder, "--plot", tmp_path / "figures.svg")
    picture = ET.parse(tmp_path / "figures.svg").getroot()  # noqa: S314
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("fused") == len(retrieval.METRICS)
    assert {"text", "rewrite", "nDCG@10"} <= set(texts)
    assert "Island pages: 3 questions over 6 passages" in texts


def test_picture_of_nothing_found_can_be_drawn() -> None:
    nothing = {"text": {"fused": dict.fromkeys([*retrieval.METRICS, retrieval.P50], 0.0)}}
    assert ET.fromstring(retrieval_chart.svg(nothing, "a < b")) is not None  # noqa: S314


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["retrieval", "nowhere"], "nowhere: there is no such folder"),
        (["answerability", "nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
        (["parsing", "nowhere"], "nowhere: there is no <format>/sources/<file>"),
    ],
)
def test_what_is_not_there_is_said(words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("evaluate", *words)


def test_only_pictures_that_can_be_drawn_are_promised(folder: Path) -> None:
    with pytest.raises(CommandError, match="drawn as SVG"):
        run("evaluate", "retrieval", folder, "--plot", "figures.pdf")
    assert not Collection.objects.exists()


def test_answerability_takes_documents_in_and_keeps_them(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name, text in ISLAND.items():
        (pages / f"{name}.md").write_text(f"# About the {name}\n\n{text}", encoding="utf-8")
    questions = tmp_path / "questions.jsonl"
    rows = [{"question": again, "answerable": True} for _, again, _ in QUESTIONS.values()]
    foreign = ["What is the capital of Mongolia?", "Who wrote Moby-Dick?"]
    write(questions, rows + [{"question": text, "answerable": False} for text in foreign])
    words = ["evaluate", "answerability", questions, "--documents", pages, "--json"]
    figures = json.loads(run(*words))
    assert (figures["questions"], figures["answerable"], figures["auc"]) == (5, 3, 1.0)
    assert figures["best"]["recall"] == 1.0
    assert figures["no_context"]["recall"] == 1.0
    before = set(Document.objects.values_list("pk", "version"))
    assert json.loads(run(*words)) == figures
    assert set(Document.objects.values_list("pk", "version")) == before


def test_calibration_lets_searches_judge_by_the_collection(island: Collection) -> None:
    figures = json.loads(run("calibrate", island.name, "--json"))[0]
    calibration = Calibration.objects.get(collection=island, model=island.embedding_model)
    assert figures["threshold"] == pytest.approx(calibration.threshold, abs=1e-4)
    results = search("When does the night ferry leave?", collections=[island.name])
    assert results.stats["threshold"] == pytest.approx(calibration.threshold)
    assert not results.no_context
    assert search("Who wrote Moby-Dick?", collections=[island.name]).no_context
    Calibration.objects.update(threshold=2.0)
    assert search("When does the night ferry leave?", collections=[island.name]).no_context


def test_dry_run_keeps_no_threshold_and_shows_it(island: Collection) -> None:
    output = run("calibrate", island.name, "--dry-run")
    assert "not kept" in output
    assert "about something else (200)" in output
    assert not Calibration.objects.exists()


def test_golden_questions_set_the_threshold(island: Collection) -> None:
    for number in range(10):
        for _, question, source in QUESTIONS.values():
            GoldenQuestion.objects.create(
                collection=island, question=f"{question} ({number})", sources=[source]
            )
    outcome = calibrate(island)
    assert len(outcome.scores.answerable) == 30
    assert "golden" in outcome.choice.reason


@pytest.mark.parametrize(
    ("name", "message"), [("nowhere", "There is no collection"), ("empty", "nothing in 'empty'")]
)
def test_what_cannot_be_calibrated_is_said(name: str, message: str) -> None:
    Collection.objects.create(name="empty")
    with pytest.raises(CommandError, match=message):
        run("calibrate", name)


@pytest.fixture
def countable(island: Collection, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """Return the collection where its six chunks are enough."""
    monkeypatch.setattr("knowledge.calibration.FEWEST_CHUNKS", 4)
    return island


def test_calibration_is_due_first_and_when_the_collection_has_doubled(
    countable: Collection,
) -> None:
    assert is_due(countable)
    refresh(countable)
    assert not is_due(countable)
    calibration = Calibration.objects.get()
    calibration.report["chunks"] = 3
    calibration.save()
    assert is_due(countable)
    Calibration.objects.update(model="another")
    assert is_due(countable)


def test_small_collections_are_left_alone(island: Collection) -> None:
    refresh(island)
    assert not Calibration.objects.exists()


def test_recall_counts_golden_questions_that_have_an_answer(
    island: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for question, sources in [
        ("When does the night ferry leave?", ["ferry"]),
        ("What does a tandem cost?", ["bicycle", "gone"]),
        ("Who wrote Moby-Dick?", []),
    ]:
        GoldenQuestion.objects.create(collection=island, question=question, sources=sources)
    figures = json.loads(run("evaluate", "golden", island.name, "--json"))
    assert figures == {island.name: {"questions": 2, "recall@5": 0.75, "recall@10": 0.75}}
    monkeypatch.setattr(golden, "DEPTHS", (1,))
    assert golden.judged(island) == {
        "figures": {"questions": 2, "recall@1": 0.75},
        "right": 3,
        "unanswerable": 1,
        "declined": 1,
        "rows": [
            row("When does the night ferry leave?", ["ferry"], rank=1),
            row("What does a tandem cost?", ["bicycle", "gone"], rank=1),
            row("Who wrote Moby-Dick?", [], declined=True),
        ],
    }


def row(question: str, sources: list[str], **values: Any) -> dict[str, Any]:
    """What came of a golden question that was judged rightly."""
    usual = {"rank": None, "declined": False, "right": True}
    return {"question": question, "sources": sources, **usual, **values}


def test_golden_questions_are_asked_only_where_there_are_any(island: Collection) -> None:
    with pytest.raises(CommandError, match="has no golden question with a source"):
        run("evaluate", "golden", island.name)
