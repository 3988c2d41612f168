"""Assessment: many requirements held against many documents, a row for each, kept as it comes.

Without a model a row has the passages that are nearest, and how sure search is of them; a verdict
takes a model. What is in the file already is not done again, so a batch can be stopped any time.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agents.analysis.document_tools import documents_of
from agents.analysis.evidence import of_passage
from agents.analysis.obligations import checklist
from agents.analysis.shapes import Evidence
from agents.attributes import Unit, Value
from agents.errors import AgentError
from agents.library.verdict import Verdict
from agents.tools.tool import Caller
from knowledge.language import surely
from knowledge.models import Document
from knowledge.search import SearchResult, search

PASSAGES = 5  # of a document that are read for a requirement
LONGEST_REQUIREMENT = 1000  # characters
MOST_REQUIREMENTS = 500
LONGEST_QUOTE = 300
# Says of a requirement what passages say of it; None where the model failed.
Judge = Callable[[str, Sequence[str]], Verdict | None]
Watch = Callable[[int, int], None]


class UnusableBatch(AgentError):
    """What a batch is to be made of cannot be used."""


class Row(Value):
    """What one document says of one requirement."""

    key: str  # of the document, its version, the requirement, and who judged
    requirement: str
    source: str = ""  # where the requirement stands; empty where it was written by hand
    document_id: str
    title: str
    version: int
    evidence: list[Evidence] = []  # the nearest first
    certainty: Unit | None = (
        None  # how likely the first is about it; None: only words were compared
    )
    verdict: str = ""  # empty: nobody judged
    reason: str = ""
    named: list[str] = []  # ids of the passages that tell so


@dataclass(frozen=True)
class Requirement:
    """What documents are held against."""

    text: str
    source: str = ""


@dataclass
class Batch:
    """A batch under way, whose rows are lines of a file."""

    path: Path
    judge: Judge | None = None
    judge_name: str = ""  # the model; empty: none judges
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
        every = [(document, each) for document in documents for each in requirements]
        found = []
        for number, (document, requirement) in enumerate(every, start=1):
            key = self.key(document, requirement)
            row = self.rows.get(key)
            if row is None:
                row = self._made(key, document, requirement)
                # Where the model failed, the next run asks again.
                if row.verdict or not self.judge:
                    self.rows[key] = row
                    append(self.path, row)
            found.append(row)
            if watch:
                watch(number, len(every))
        return found

    def key(self, document: Document, requirement: Requirement) -> str:
        """Return what tells a row apart: another version or model makes another."""
        parts = [document.pk, document.version, requirement.text, self.judge_name]
        return sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def _made(self, key: str, document: Document, requirement: Requirement) -> Row:
        result = nearest(document, requirement.text)
        evidence = [of_passage(each) for each in result.passages]
        row = Row(
            key=key,
            requirement=requirement.text,
            source=requirement.source,
            document_id=document.pk,
            title=document.title,
            version=document.version,
            evidence=evidence,
            certainty=result.stats.get("certainty"),
        )
        said = (
            self.judge(requirement.text, [each.text for each in evidence]) if self.judge else None
        )
        if said is None:
            return row
        named = [evidence[place].id for place in said.places]
        return row.model_copy(
            update={"verdict": said.verdict, "reason": said.reason, "named": named}
        )


def nearest(document: Document, requirement: str) -> SearchResult:
    """Return the passages of a document that are nearest to a requirement."""
    return search(
        requirement,
        collections=[document.collection.name],
        documents=[document.pk],
        spoken=surely(requirement),
        limit=PASSAGES,
    )


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


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file that are not blank; none where there is no file."""
    if path.exists():
        yield from (line for line in path.read_text("utf-8").splitlines() if line.strip())


def append(path: Path, row: Row) -> None:
    """Add a row to the file, whole or not at all as far as a reader can tell."""
    cut = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut else "") + row.model_dump_json() + "\n")


def as_markdown(rows: Iterable[Row], title: str) -> str:
    """Return the report: a section for each document, with quotations under each requirement."""
    lines = [f"# {title}", ""]
    document = ""
    for row in rows:
        if row.document_id != document:
            document = row.document_id
            lines += [f"## {row.title} (version {row.version})", ""]
        lines += [f"### {row.requirement}", ""]
        lines += [f"From {row.source}.", ""] if row.source else []
        lines += [f"{VERDICTS[row.verdict]} {row.reason}".strip(), ""]
        for each in shown(row):
            quote = " ".join(each.text.split())[:LONGEST_QUOTE]
            lines += [f"> {quote}", ">", f"> {each.id}, {each.section or each.title}", ""]
    return "\n".join(lines)


VERDICTS: Mapping[str, str] = {
    "Entailment": "The document says so.",
    "Contradiction": "The document says otherwise.",
    "NotMentioned": "The document does not mention it.",
    "": "Nobody judged this; these passages are nearest.",
}


def shown(row: Row) -> list[Evidence]:
    """Return the passages that a model named; without a verdict the three nearest."""
    return (
        [each for each in row.evidence if each.id in row.named] if row.verdict else row.evidence[:3]
    )


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON values."""
    return [row.model_dump(mode="json", exclude={"key"}) for row in rows]
