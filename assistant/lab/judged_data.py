"""Judged data: files that people judged, and a folder of passages taken in once to be searched."""

import fcntl
import gzip
import json
import logging
import re
import shutil
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from knowledge.errors import InvalidCollectionName, KnowledgeError
from knowledge.ingestion import plan, run
from knowledge.models import COLLECTION_NAME, Collection, Document, Ingest, document_id

log = logging.getLogger(__name__)

CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
QUERIES, QRELS = "queries.jsonl", "qrels.tsv"
ID = AliasChoices("id", "_id")  # BEIR's files have the latter
LONGEST_ID = 1000  # what a document's source may have
FORMS = ("text", "rewrite")
# Passages per file: whoever watches sees every file that is finished.
ROWS_AT_ONCE = 50
LONGEST_SLUG = 40
# A passage without a title is not to be called, and found, by the file it is handed over in.
UNTITLED = " "

Work = Callable[[uuid.UUID], object]  # does the job of that id


class Unjudgeable(KnowledgeError):
    """What is to be evaluated cannot be read."""

    code = "unjudgeable"


class Line(BaseModel):
    """One line. Identifiers may be numbers, and keys nobody asks for are left alone."""

    model_config = ConfigDict(coerce_numbers_to_str=True, extra="ignore", frozen=True)


Kind = TypeVar("Kind", bound=Line)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of every line that is not blank.

    A name that ends in .gz is unpacked. Raises Unjudgeable.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = decoded(line, path, number)
                if text.strip():
                    yield number, text
    except FileNotFoundError as error:
        raise Unjudgeable(f"{path}: there is no such file.") from error
    # gzip: an OSError for what is no archive, the others for one that is damaged.
    except (OSError, EOFError, zlib.error) as error:
        raise Unjudgeable(f"{path}: it cannot be read: {error}.") from error


def decoded(line: bytes, path: Path, number: int) -> str:
    """Return the line as text. Raises Unjudgeable."""
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise Unjudgeable(f"{path}, line {number}: not UTF-8: {error.reason}.") from error


def read_lines(path: Path, kind: type[Kind]) -> Iterator[tuple[int, Kind]]:
    """Yield the number of every line and what it holds. Raises Unjudgeable."""
    for number, text in text_lines(path):
        try:
            yield number, kind.model_validate_json(text)
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, problem["loc"]))
            what = f"{field!r}: {problem['msg']}" if field else problem["msg"]
            raise Unjudgeable(f"{path}, line {number}: {what}.") from error


def all_lines(path: Path, kind: type[Kind], called: str) -> list[Kind]:
    """Return what the lines of a file hold. Raises Unjudgeable, also where there is none."""
    lines = [line for _, line in read_lines(path, kind)]
    if not lines:
        raise Unjudgeable(f"{path}: there is no {called} in it.")
    return lines


class Row(Line):
    """A passage of the corpus."""

    id: str = Field(min_length=1, max_length=LONGEST_ID, validation_alias=ID)
    title: str | None = ""
    text: str


class Question(Line):
    """A question, and what it was rewritten to by somebody who knew the conversation."""

    id: str = Field(min_length=1, validation_alias=ID)
    text: str
    rewrite: str | None = None
    language: str = ""  # of the question, where it may be another than the passages'

    def form(self, name: str) -> str:
        """Return the question in that form; one that needed no rewriting is as it was typed."""
        return (self.rewrite or self.text) if name == "rewrite" else self.text


@dataclass(frozen=True)
class JudgedFolder:
    """A judged folder, checked: every judgement is about a passage and a question there is."""

    path: Path
    corpus: Path
    digest: str  # of the corpus; other questions or judgements leave it as it is
    size: int  # passages
    questions: tuple[Question, ...]  # those with a relevant passage
    grades: dict[str, dict[str, int]]  # question → passage → grade

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms the questions come in."""
        rewritten = any(question.rewrite for question in self.questions)
        return FORMS if rewritten else FORMS[:1]

    def rows(self) -> Iterator[Row]:
        """Yield the passages."""
        return (row for _, row in read_lines(self.corpus, Row))


def read_folder(folder: Path) -> JudgedFolder:
    """Read a judged folder. Raises Unjudgeable, which names the file and the line.

    `corpus.jsonl[.gz]` has `id`, `title`, `text`; `queries.jsonl` `id`, `text` and perhaps
    `rewrite`; `qrels.tsv` question, passage, grade, or TREC's four columns, with or without a
    line of headings. Questions without a relevant passage are left out: nothing can be found.
    """
    if not folder.is_dir():
        raise Unjudgeable(f"{folder}: there is no such folder.")
    corpus = next((folder / name for name in CORPUS if (folder / name).is_file()), None)
    if corpus is None:
        raise Unjudgeable(f"{folder}: there is neither {CORPUS[0]} nor {CORPUS[1]} in it.")
    passages, digest = passages_of(corpus)
    questions = questions_of(folder / QUERIES)
    grades = grades_of(folder / QRELS, frozenset(passages), frozenset(questions))
    answerable = tuple(
        question
        for question in questions.values()
        if any(grade > 0 for grade in grades.get(question.id, {}).values())
    )
    if not answerable:
        raise Unjudgeable(f"{folder / QRELS}: no question has a relevant passage.")
    return JudgedFolder(folder, corpus, digest, len(passages), answerable, grades)


def passages_of(path: Path) -> tuple[set[str], str]:
    """Return the identifiers of the passages, and the digest of the corpus."""
    identifiers: set[str] = set()
    digest = sha256()
    for number, row in read_lines(path, Row):
        add_once(identifiers, row.id, path, number)
        digest.update(repr((row.id, row.title, row.text)).encode("utf-8", "replace"))
    if not identifiers:
        raise Unjudgeable(f"{path}: there is no passage in it.")
    return identifiers, digest.hexdigest()


def questions_of(path: Path) -> dict[str, Question]:
    """Return the questions by identifier."""
    identifiers: set[str] = set()
    questions = {}
    for number, question in read_lines(path, Question):
        add_once(identifiers, question.id, path, number)
        empty = next((form for form in FORMS if not question.form(form).strip()), None)
        if empty:
            raise Unjudgeable(f"{path}, line {number}: {empty!r} of {question.id!r} is empty.")
        questions[question.id] = question
    return questions


def add_once(identifiers: set[str], identifier: str, path: Path, number: int) -> None:
    """Add the identifier to the others. Raises Unjudgeable when it already is there."""
    if identifier in identifiers:
        raise Unjudgeable(f"{path}, line {number}: {identifier!r} was there before.")
    identifiers.add(identifier)


def grades_of(
    path: Path, passages: frozenset[str], questions: frozenset[str]
) -> dict[str, dict[str, int]]:
    """Return question → passage → grade."""
    grades: dict[str, dict[str, int]] = {}
    for number, question, passage, grade in judgements(path):
        for name, known, kind in (
            (question, questions, f"question in {QUERIES}"),
            (passage, passages, "passage in the corpus"),
        ):
            if name not in known:
                raise Unjudgeable(f"{path}, line {number}: there is no {kind} {name!r}.")
        grades.setdefault(question, {})[passage] = grade
    return grades


def judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Yield line, question, passage and grade."""
    first = True
    for number, text in text_lines(path):
        columns = [cell.strip() for cell in (text.split("\t") if "\t" in text else text.split())]
        if len(columns) not in {3, 4}:
            raise Unjudgeable(
                f"{path}, line {number}: {len(columns)} columns instead of 3 (question, passage, "
                "grade) or 4 (question, anything, passage, grade)."
            )
        grade = whole(columns[-1])
        if grade is not None:
            yield number, columns[0], columns[-2], grade
        elif not first:
            raise Unjudgeable(
                f"{path}, line {number}: the grade {columns[-1]!r} is no whole number."
            )
        first = False


def whole(text: str) -> int | None:
    """Return the number when it is a whole one: "1", "2.0"."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


@dataclass(frozen=True)
class JudgedCollection:
    """A judged folder whose passages are in a collection, so that they can be searched."""

    folder: JudgedFolder
    name: str
    added: int  # passages taken in by this run
    unfindable: int  # passages with too little text to be found by

    def identifiers(self) -> dict[str, str]:
        """Return the identifier of each document → that of its passage."""
        return {document_id(self.name, row.id): row.id for row in self.folder.rows()}


def collection_name(name: str, digest: str) -> str:
    """Return the name of the collection that holds what a file or folder of that name says."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_SLUG] or "judged"
    return f"{slug}-{digest[:8]}"


def make_apart(name: str) -> None:
    """Make the collection of that name, unless it is there: one that no user's question meets."""
    Collection.objects.get_or_create(name=name, defaults={"title": name, "only_by_name": True})


def take_in(judged: JudgedFolder, *, name: str = "", work: Work = run) -> JudgedCollection:
    """Bring the passages into the collection `name`; without it, into one named after the folder.

    They go the way every document goes; each is a document whose source is the passage's `id`.
    Those that are there are left alone, whatever they say: an interrupted run is continued, and
    the next has nothing to do, for the collection's name changes with the corpus. Two runs at once
    take turns. `work` does the job, or waits for the worker that does. Raises
    InvalidCollectionName, EmbeddingUnavailable, and Unjudgeable when the job was not done.
    """
    name = name or collection_name(judged.path.resolve().name, judged.digest)
    if not re.match(COLLECTION_NAME, name):
        raise InvalidCollectionName(name)
    make_apart(name)
    with exclusive_folder(name) as folder:
        before = sources(name)
        if write_missing(judged, folder, before):
            # What is not in these files was taken in before, and is not gone.
            finish(plan(name, paths=[folder], keep_missing=True), work)
        shutil.rmtree(folder)
    after = sources(name)
    unfindable = sum(row.id not in after for row in judged.rows())
    return JudgedCollection(judged, name, len(after) - len(before), unfindable)


@contextmanager
def exclusive_folder(name: str) -> Iterator[Path]:
    """Yield the folder for a collection's files, which no other run touches meanwhile.

    It is the same each time, so that a job that was killed finds its files and is gone on with.
    """
    parent = Path(settings.STATE_DIR) / "evaluation"
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("another run is taking in %s; this one waits for it", name)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield parent / name


def finish(job: Ingest, work: Work) -> None:
    """Have the job done. Raises Unjudgeable when it was not, or nothing is there to be searched."""
    work(job.pk)
    job.refresh_from_db()
    # One that came to its end without anything new has failed, too, and has a report.
    ended = job.status == Ingest.Status.DONE or (job.status == Ingest.Status.FAILED and job.report)
    if not ended or not job.collection.documents.exists():
        reason = job.error or "somebody else is at it, or stopped it"
        raise Unjudgeable(f"{job.name} was not taken in ({job.status}): {reason}")


def sources(name: str) -> set[str]:
    """Return the sources of the documents in the collection of that name."""
    documents = Document.objects.filter(collection__name=name)
    return set(documents.values_list("source", flat=True))


def write_missing(judged: JudgedFolder, folder: Path, present: set[str]) -> bool:
    """Write the passages that are missing, with those beside them; tell whether there are any."""
    folder.mkdir(parents=True, exist_ok=True)
    is_missing = False
    for number, rows in enumerate(batches(judged.rows())):
        if any(row.id not in present and row.text.strip() for row in rows):
            is_missing = True
            documents = json.dumps([entry(row) for row in rows if row.text.strip()])
            # Put in place whole: a worker that outlived an earlier run may be reading.
            aside = folder / f"{number:06}.part"
            aside.write_text(documents, encoding="utf-8")
            aside.replace(aside.with_suffix(".json"))
    return is_missing


def batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield the rows, as many at a time as go into one file."""
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        yield batch


def entry(row: Row) -> dict[str, str]:
    """Return the row in the document structure."""
    return {"source": row.id, "title": row.title or UNTITLED, "content": row.text}
