"""Assessment: many requirements held against many documents, a row for each, kept as it comes.

Who makes the rows is told from outside: by rules a row has the passages that are nearest, and how
sure search is of them; a verdict takes a model. What is in the file already is not done again, so
a batch can be stopped any time.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agents.analysis.document_tools import documents_of
from agents.analysis.evidence import of_passage
from agents.analysis.obligations import checklist
from agents.analysis.shapes import Evidence, Verdict
from agents.attributes import Unit, Value
from agents.errors import AgentError
from agents.tools.tool import Caller
from knowledge.language import surely
from knowledge.models import Document
from knowledge.search import search

PASSAGES = 5  # of a document that are read for a requirement
LONGEST_REQUIREMENT = 1000  # characters
MOST_REQUIREMENTS = 500
Watch = Callable[[int, int], None]


class UnusableBatch(AgentError):
    """What a batch is to be made of cannot be used."""


class Judged(Value):
    """One requirement that an analysis found, and its verdict."""

    requirement: str
    section: str = ""
    verdict: Verdict | Literal[""] = ""  # empty: nobody judged
    explanation: str = ""
    named: list[str] = []  # ids of the passages that show it


class Row(Value):
    """What one document says of one requirement or question."""

    key: str  # of the document, its version, the requirement, and who judged
    requirement: str
    source: str = ""  # where the requirement stands; empty where it was written by hand
    document_id: str
    title: str
    version: int
    evidence: list[Evidence] = []  # without a model the nearest first
    certainty: Unit | None = None  # how likely the first is about it; None: nothing tells
    turn: str = ""  # id of the turn that answered; empty: rules did
    status: str = ""  # how that turn ended
    answer: str = ""  # of that turn, in Markdown, with its sources
    judged: list[Judged] = []

    @property
    def verdict(self) -> Verdict | Literal[""]:
        """The gravest of its verdicts; empty where nobody judged."""
        found = {each.verdict for each in self.judged}
        order: tuple[Verdict, ...] = ("violation", "gap", "compliant")
        return next((each for each in order if each in found), "")


@dataclass(frozen=True)
class Requirement:
    """What documents are held against: a sentence, or a question."""

    text: str
    source: str = ""


@dataclass(frozen=True)
class Cell:
    """A row that is to be made."""

    key: str
    document: Document
    requirement: Requirement

    def row(self) -> Row:
        """Return the row with nothing in it yet."""
        return Row(
            key=self.key,
            requirement=self.requirement.text,
            source=self.requirement.source,
            document_id=self.document.pk,
            title=self.document.title,
            version=self.document.version,
        )


# Makes rows, in any order; those that came to nothing are made again by the next run.
Made = Iterator[tuple[Row, bool]]  # and whether it came to something
Maker = Callable[[Sequence[Cell]], Made]


@dataclass
class Batch:
    """A batch under way, whose rows are lines of a file."""

    path: Path
    maker: Maker
    judge: str = ""  # who judges, and by what; another makes other rows
    rows: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the rows that are there. Raises UnusableBatch."""
        for number, line in enumerate(lines_of(self.path), start=1):
            try:
                row = Row.model_validate_json(line)
            except ValidationError:
                # The last one may have been cut off; others are somebody else's.
                if number == 1:
                    raise UnusableBatch(
                        f"{self.path} holds no rows of a batch: name another file, or remove it."
                    ) from None
                continue
            self.rows[row.key] = row

    def run(
        self,
        requirements: Sequence[Requirement],
        documents: Sequence[Document],
        watch: Watch | None = None,
    ) -> list[Row]:
        """Return a row for each document and requirement, in order; those missing are made."""
        cells = self._cells(requirements, documents)
        found = {key: self.rows[key] for key in cells.keys() & self.rows.keys()}
        for row, is_done in self.maker(self.missing(requirements, documents)):
            found[row.key] = row
            if is_done:
                self.rows[row.key] = row
                append(self.path, row)
            if watch:
                watch(len(found), len(cells))
        return [found[key] for key in cells]

    def missing(
        self, requirements: Sequence[Requirement], documents: Sequence[Document]
    ) -> list[Cell]:
        """Return what is still to be made."""
        cells = self._cells(requirements, documents)
        return [cell for key, cell in cells.items() if key not in self.rows]

    def _cells(
        self, requirements: Sequence[Requirement], documents: Sequence[Document]
    ) -> dict[str, Cell]:
        """Return what is asked for, each once, by its key."""
        cells = (
            Cell(self.key(document, each), document, each)
            for document in documents
            for each in requirements
        )
        return {cell.key: cell for cell in cells}

    def key(self, document: Document, requirement: Requirement) -> str:
        """Return what tells a row apart: another version or judge makes another."""
        parts = [document.pk, document.version, requirement.text, self.judge]
        return sha256(json.dumps(parts).encode()).hexdigest()[:16]


def by_rules(cells: Sequence[Cell]) -> Made:
    """Yield rows with the passages of the document that are nearest; nobody judges."""
    for cell in cells:
        text = cell.requirement.text
        result = search(
            text,
            collections=[cell.document.collection.name],
            documents=[cell.document.pk],
            spoken=surely(text),
            reads=False,
            limit=PASSAGES,
        )
        evidence = [of_passage(each) for each in result.passages]
        found = {"evidence": evidence, "certainty": result.stats.get("certainty")}
        yield cell.row().model_copy(update=found), True


def requirements_of(path: Path) -> list[Requirement]:
    """Return the lines of a file, each a requirement or question. Raises UnusableBatch."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UnusableBatch(f"{path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UnusableBatch(f"{path}: not UTF-8: {error.reason}.") from error
    found = list(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip()))
    if long := [each for each in found if len(each) > LONGEST_REQUIREMENT]:
        raise UnusableBatch(
            f"{path}: a line has {len(long[0]):,} characters; {LONGEST_REQUIREMENT:,} may be."
        )
    if not 0 < len(found) <= MOST_REQUIREMENTS:
        raise UnusableBatch(
            f"{path}: there are {len(found):,} lines with text; 1 to {MOST_REQUIREMENTS} may be."
        )
    return [Requirement(each) for each in found]


def prescribed(collection: str) -> list[Requirement]:
    """Return what the documents of a collection prescribe. Raises UnusableBatch."""
    caller = Caller("", collections=(collection,))
    found = checklist(caller, limit=MOST_REQUIREMENTS, matched=0)
    if not found.obligations:
        raise UnusableBatch(
            f"Nothing in {collection!r} is worded as a duty: write requirements into a file and "
            "name it with --questions."
        )
    return [
        Requirement(each.requirement, " > ".join(filter(None, (each.document, each.section))))
        for each in found.obligations
    ]


def documents_in(collection: str) -> list[Document]:
    """Return the documents of a collection by their titles. Raises UnusableBatch."""
    found = list(documents_of(Caller("", collections=(collection,))).order_by("title", "pk"))
    if not found:
        raise UnusableBatch(f"There is no document in {collection!r}.")
    return found


def lines_of(path: Path) -> Iterable[str]:
    """Return the lines of a file that are not blank; none where there is no file."""
    if not path.exists():
        return []
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


def append(path: Path, row: Row) -> None:
    """Add a row to the file, whole or not at all as far as a reader can tell."""
    cut = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut else "") + row.model_dump_json() + "\n")
