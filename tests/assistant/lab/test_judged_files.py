"""JudgedFolder files: what is read, and which line is to blame when it cannot be."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.lab import answerability
from assistant.lab.judged_data import JudgedFolder, Unjudgeable, read_folder

PASSAGES = [
    {"id": "p1", "title": "Ferry", "text": "The ferry sails at nine."},
    {"id": "p2", "title": "", "text": "The lighthouse has four rooms."},
]
QUESTIONS = [
    {"id": "q1", "text": "when?", "rewrite": "When does the ferry sail?"},
    {"id": "q2", "text": "How many rooms?"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\tp1\t2\nq2\tp2\t1\nq2\tp1\t0\n"

Write = Callable[..., JudgedFolder]


def lines(rows: list[dict[str, str]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a folder, parts of it replaced, and read it."""

    def read(
        corpus: str = lines(PASSAGES), queries: str = lines(QUESTIONS), qrels: str = QRELS
    ) -> JudgedFolder:
        (tmp_path / "corpus.jsonl").write_text(corpus, encoding="utf-8")
        (tmp_path / "queries.jsonl").write_text(queries, encoding="utf-8")
        (tmp_path / "qrels.tsv").write_text(qrels, encoding="utf-8")
        return read_folder(tmp_path)

    return read


def test_questions_have_the_forms_that_are_in_the_file(write: Write) -> None:
    folder = write()
    assert folder.forms == ("text", "rewrite")
    assert [question.form("rewrite") for question in folder.questions] == [
        "When does the ferry sail?",
        "How many rooms?",
    ]
    assert write(queries=lines([{"id": "q1", "text": "when?"}]), qrels="q1\tp1\t1").forms == (
        "text",
    )


@pytest.mark.parametrize(
    "qrels",
    [
        QRELS,
        QRELS.split("\n", 1)[1],
        "q1 0 p1 2\nq2 0 p2 1\nq2 0 p1 0",
        "q1\t0\tp1\t2\n\nq2\t0\tp2\t1.0\nq2\t0\tp1\t0\n",
        "\ufeffquery-id\tcorpus-id\tscore\r\nq1\tp1\t2\r\nq2\tp2\t1\r\nq2\tp1\t0\r\n",
    ],
)
def test_judgements_are_read_in_every_usual_layout(write: Write, qrels: str) -> None:
    assert write(qrels=qrels).grades == {"q1": {"p1": 2}, "q2": {"p2": 1, "p1": 0}}


def test_questions_without_anything_relevant_are_left_out(write: Write) -> None:
    folder = write(qrels="q1\tp1\t1\nq2\tp1\t0\n")
    assert [question.id for question in folder.questions] == ["q1"]


def test_corpus_may_be_packed_and_keeps_its_digest(write: Write, tmp_path: Path) -> None:
    plain = write()
    (tmp_path / "corpus.jsonl").unlink()
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(lines(PASSAGES))
    packed = read_folder(tmp_path)
    assert (packed.digest, packed.size) == (plain.digest, 2)
    assert [row.id for row in packed.rows()] == ["p1", "p2"]


def test_digest_changes_with_the_corpus_only(write: Write) -> None:
    plain = write()
    assert write(qrels="q1\tp1\t1").digest == plain.digest
    assert write(corpus=lines([*PASSAGES[:1], PASSAGES[1] | {"text": "!"}])).digest != plain.digest


def test_identifiers_may_be_numbers_and_called_as_in_beir(write: Write) -> None:
    folder = write(
        corpus='{"_id": 7, "title": null, "text": "x"}\n',
        queries='{"_id": 1, "text": "?", "metadata": {}}\n',
        qrels="1\t7\t1",
    )
    assert folder.grades == {"1": {"7": 1}}


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("corpus", "", "corpus.jsonl: there is no passage"),
        ("corpus", '{"id": "p1"}', "corpus.jsonl, line 1: 'text'"),
        ("corpus", lines(PASSAGES) + "{oops", "corpus.jsonl, line 3: "),
        ("corpus", lines([*PASSAGES, PASSAGES[0]]), "line 3: 'p1' was there before"),
        ("queries", '{"id": "q1", "text": " "}', "queries.jsonl, line 1: 'text' of 'q1' is empty"),
        ("queries", lines(QUESTIONS) * 2, "queries.jsonl, line 3: 'q1' was there before"),
        ("qrels", QRELS + "q9\tp1\t1", "qrels.tsv, line 5: there is no question in queries.jsonl"),
        ("qrels", QRELS + "q1\tp9\t1", "line 5: there is no passage in the corpus 'p9'"),
        ("qrels", QRELS + "q1\tp2", "line 5: 2 columns"),
        ("qrels", QRELS + "q1\tp2\thigh", "line 5: the grade 'high' is no whole number"),
        ("qrels", "q1\tp1\t0", "no question has a relevant passage"),
    ],
)
def test_whatever_is_wrong_is_said_with_its_line(
    write: Write, part: str, text: str, message: str
) -> None:
    with pytest.raises(Unjudgeable) as raised:
        write(**{part: text})
    assert message in str(raised.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unjudgeable, match="no such folder"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(Unjudgeable, match=r"neither corpus.jsonl nor corpus.jsonl.gz"):
        read_folder(tmp_path)
    (tmp_path / "corpus.jsonl").write_text(lines(PASSAGES), encoding="utf-8")
    with pytest.raises(Unjudgeable, match=r"queries.jsonl: there is no such file"):
        read_folder(tmp_path)


@pytest.mark.parametrize("content", [b"no archive", gzip.compress(b"x" * 999, mtime=0)[:-9]])
def test_damaged_archive_is_no_traceback(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "corpus.jsonl.gz").write_bytes(content)
    with pytest.raises(Unjudgeable, match=r"corpus.jsonl.gz: it cannot be read"):
        read_folder(tmp_path)


def test_bytes_that_are_no_text_are_said_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(lines(PASSAGES).encode() + b"\xff\n")
    with pytest.raises(Unjudgeable, match="line 3: not UTF-8"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "x?", "answerable": "perhaps"}', "line 1: 'answerable'"),
        ('{"question": " ", "answerable": true}', "line 1: 'question' is empty"),
        ('{"question": "x?", "answerable": true}', "others"),
    ],
)
def test_answerability_needs_both_kinds_of_questions(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Unjudgeable, match=message):
        answerability.questions_of(path)


def test_figures_of_answerability_follow_from_what_was_said() -> None:
    answers = [
        answerability.Answer(answerable=True, confidence=0.2, no_context=False, threshold=0.3),
        answerability.Answer(answerable=True, confidence=-0.1, no_context=True, threshold=0.3),
        answerability.Answer(answerable=False, confidence=-0.3, no_context=True, threshold=0.3),
    ]
    figures = answerability.figures(answers)
    assert (figures["questions"], figures["answerable"], figures["auc"]) == (3, 2, 1.0)
    assert figures["no_context"] == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3)}
    assert figures["best"] == {
        "precision": 1.0, "recall": 1.0, "f1": 1.0, "shift": -0.2
    }  # fmt: skip
