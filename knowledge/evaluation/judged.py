"""Judged: a folder of passages, questions and what somebody found relevant to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import AliasChoices, Field

from knowledge.evaluation.lines import Line, Unjudgeable, read, text_lines

CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
QUERIES, QRELS = "queries.jsonl", "qrels.tsv"
ID = AliasChoices("id", "_id")  # BEIR's files have the latter
LONGEST_ID = 1000  # what a document's source may have
FORMS = ("text", "rewrite")


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

    def form(self, name: str) -> str:
        """Return the question in that form; one that needed no rewriting is as it was typed."""
        return (self.rewrite or self.text) if name == "rewrite" else self.text


@dataclass(frozen=True)
class Judged:
    """A judged collection, checked: every judgement is about a passage and a question there is."""

    folder: Path
    corpus: Path
    digest: str  # of the corpus; other questions or judgements leave it as it is
    size: int  # passages
    questions: tuple[Question, ...]  # those with a relevant passage
    grades: dict[str, dict[str, int]]  # question → passage → grade

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms the questions come in."""
        rewritten = any(each.rewrite for each in self.questions)
        return FORMS if rewritten else FORMS[:1]

    def rows(self) -> Iterator[Row]:
        """Yield the passages."""
        return (row for _, row in read(self.corpus, Row))


def judged(folder: Path) -> Judged:
    """Read the folder. Raises Unjudgeable, which names the file and the line.

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
        each for each in questions.values() if any(g > 0 for g in grades.get(each.id, {}).values())
    )
    if not answerable:
        raise Unjudgeable(f"{folder / QRELS}: no question has a relevant passage.")
    return Judged(folder, corpus, digest, len(passages), answerable, grades)


def passages_of(path: Path) -> tuple[set[str], str]:
    """Return the identifiers of the passages, and the digest of the corpus."""
    seen: set[str] = set()
    digest = sha256()
    for number, row in read(path, Row):
        once(seen, row.id, path, number)
        digest.update(repr((row.id, row.title, row.text)).encode("utf-8", "replace"))
    if not seen:
        raise Unjudgeable(f"{path}: there is no passage in it.")
    return seen, digest.hexdigest()


def questions_of(path: Path) -> dict[str, Question]:
    """Return the questions by identifier."""
    seen: set[str] = set()
    found = {}
    for number, each in read(path, Question):
        once(seen, each.id, path, number)
        empty = next((form for form in FORMS if not each.form(form).strip()), None)
        if empty:
            raise Unjudgeable(f"{path}, line {number}: {empty!r} of {each.id!r} is empty.")
        found[each.id] = each
    return found


def once(seen: set[str], identifier: str, path: Path, number: int) -> None:
    """Add the identifier to those seen. Raises Unjudgeable when it already is there."""
    if identifier in seen:
        raise Unjudgeable(f"{path}, line {number}: {identifier!r} was there before.")
    seen.add(identifier)


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
        parts = [each.strip() for each in (text.split("\t") if "\t" in text else text.split())]
        if len(parts) not in {3, 4}:
            raise Unjudgeable(
                f"{path}, line {number}: {len(parts)} columns instead of 3 (question, passage, "
                "grade) or 4 (question, anything, passage, grade)."
            )
        grade = whole(parts[-1])
        if grade is not None:
            yield number, parts[0], parts[-2], grade
        elif not first:
            raise Unjudgeable(f"{path}, line {number}: the grade {parts[-1]!r} is no whole number.")
        first = False


def whole(text: str) -> int | None:
    """Return the number when it is a whole one: "1", "2.0"."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
