"""Compliance quality: whether what bears on a requirement is found in a contract, and what it says.

Judged are contracts in the form of ContractNLI (Koreeda and Manning 2021): every contract is cut
into spans, and of every requirement people said whether the contract entails or contradicts it or
does not mention it, and by which spans.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Group, RenderableType
from rich.table import Table

from assistant.lab import judged_data
from assistant.lab.judged_data import JudgedFolder, Unjudgeable, Work
from assistant.lab.measures import detection, digits, recall
from assistant.lab.verdict import CHOICES, Choice, Verdict
from knowledge.models import document_id
from knowledge.search import Passage, search

DEPTH = 10
KEYWORDS, FUSED = "BM25", "search"
RANKINGS: Mapping[str, dict[str, Any]] = {
    KEYWORDS: {"weights": {"keyword": 1.0}},
    FUSED: {},
}
Watch = Callable[[int, int], None]
# Says of a requirement what passages say of it; nothing where the model failed.
Judge = Callable[[str, Sequence[str]], Verdict | None]


class Part(BaseModel):
    """A part of the file. Keys that nobody asks for are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


class Annotation(Part):
    """What people said of one requirement."""

    choice: Choice
    spans: list[int] = []


class AnnotationSet(Part):
    """What one group of people said, by requirement."""

    annotations: dict[str, Annotation]


class Contract(Part):
    """A contract, its spans as (begin, end) in its text, and what was said of it."""

    id: str
    text: str
    spans: list[tuple[int, int]] = Field(min_length=1)
    annotation_sets: list[AnnotationSet] = Field(min_length=1)

    @property
    def annotations(self) -> dict[str, Annotation]:
        """What was said of each requirement."""
        return self.annotation_sets[0].annotations

    def span(self, number: int) -> str:
        """Return the text of a span."""
        begin, end = self.spans[number]
        return self.text[begin:end].strip()


class Requirement(Part):
    """What a contract is held against."""

    short_description: str
    hypothesis: str


class JudgedContracts(Part):
    """The file."""

    documents: list[Contract] = Field(min_length=1)
    labels: dict[str, Requirement]


@dataclass(frozen=True)
class Case:
    """A requirement of one contract, with what people said of it."""

    contract: Contract
    name: str
    requirement: Requirement
    annotation: Annotation

    @property
    def id(self) -> str:
        """What no other case is called."""
        return f"{self.contract.id}/{self.name}"

    @property
    def evidence(self) -> dict[str, int]:
        """The spans that tell so, as sources of passages."""
        return {source(self.contract, number): 1 for number in self.annotation.spans}


def source(contract: Contract, number: int) -> str:
    """Return the source of the passage that holds a span."""
    return f"{contract.id}/{number}"


def contracts_of(path: Path, limit: int | None = None) -> JudgedContracts:
    """Return the contracts of the file, the first `limit` of them. Raises Unjudgeable."""
    try:
        judged = JudgedContracts.model_validate_json(path.read_bytes())
    except OSError as error:
        raise Unjudgeable(f"{path}: {error.strerror}.") from error
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "file"
        raise Unjudgeable(f"{path}, {place}: {problem['msg']}.") from error
    chosen = judged.documents[:limit]
    for contract in chosen:
        check(contract, judged, path)
    return judged.model_copy(update={"documents": chosen})


def check(contract: Contract, judged: JudgedContracts, path: Path) -> None:
    """Raise Unjudgeable for what names a span or a requirement that there is not."""
    for name, annotation in contract.annotations.items():
        if name not in judged.labels:
            raise Unjudgeable(f"{path}, contract {contract.id}: there is no label {name!r}.")
        if unknown := [n for n in annotation.spans if not 0 <= n < len(contract.spans)]:
            raise Unjudgeable(f"{path}, contract {contract.id}: there is no span {unknown[0]}.")


def cases(judged: JudgedContracts) -> list[Case]:
    """Return every requirement of every contract."""
    return [
        Case(contract, name, judged.labels[name], annotation)
        for contract in judged.documents
        for name, annotation in contract.annotations.items()
    ]


@contextmanager
def folder_of(judged: JudgedContracts) -> Iterator[JudgedFolder]:
    """Yield the spans as a judged folder, so that they are taken in like any other passages.

    Raises Unjudgeable where no requirement has evidence.
    """
    found = [each for each in cases(judged) if each.evidence]
    if not found:
        raise Unjudgeable("No requirement has evidence in any of these contracts.")
    spans = [
        {"id": source(contract, number), "text": contract.span(number)}
        for contract in judged.documents
        for number in range(len(contract.spans))
    ]
    questions = [{"id": each.id, "text": each.requirement.hypothesis} for each in found]
    grades = [f"{each.id}\t{span}\t1" for each in found for span in each.evidence]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, rows in ((judged_data.CORPUS[0], spans), (judged_data.QUERIES, questions)):
            (folder / file).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        (folder / judged_data.QRELS).write_text("\n".join(grades), encoding="utf-8")
        yield judged_data.read_folder(folder)


def take_in(judged: JudgedContracts, path: Path, work: Work) -> str:
    """Bring every span of the contracts into a collection of their own; return its name."""
    with folder_of(judged) as folder:
        name = judged_data.collection_name(path.resolve().parent.name, folder.digest)
        judged_data.take_in(folder, name=name, work=work)
    return name


@dataclass
class Series:
    """What came of the contracts with one requirement."""

    title: str
    recalls: dict[str, list[float]] = field(default_factory=dict)  # by ranking
    verdicts: list[tuple[Choice, Choice]] = field(default_factory=list)  # judged, the model's
    hits: int = 0  # spans that the model named and people, too
    named: int = 0
    judged: int = 0  # spans that people named where the model had a verdict


def evaluate(
    judged: JudgedContracts, collection: str, llm: Judge | None = None, watch: Watch | None = None
) -> dict[str, Any]:
    """Return how much of the evidence is found, and what a model makes of what is found.

    Each requirement is looked for in one contract at a time. Recall is the share of the spans that
    tell that are among the first ten; its means are over requirements and contracts with evidence.
    A verdict of the model is about those ten. Raises Unjudgeable where nothing can be embedded.
    """
    series = {name: Series(each.short_description) for name, each in judged.labels.items()}
    every = cases(judged)
    for number, case in enumerate(every, start=1):
        found = {name: rank(case, collection, **how) for name, how in RANKINGS.items()}
        if case.evidence:
            for name, passages in found.items():
                sources = [passage.source for passage in passages]
                share = recall(sources, case.evidence, DEPTH)
                series[case.name].recalls.setdefault(name, []).append(share)
        if llm:
            add_verdict(series[case.name], case, found[FUSED], llm)
        if watch:
            watch(number, len(every))
    return figures(series)


def rank(case: Case, collection: str, **how: Any) -> Sequence[Passage]:
    """Return the spans of the contract that a search finds. Raises Unjudgeable."""
    spans = range(len(case.contract.spans))
    result = search(
        case.requirement.hypothesis,
        collections=[collection],
        documents=[document_id(collection, source(case.contract, number)) for number in spans],
        limit=DEPTH,
        reads=False,
        **how,
    )
    if result.error:
        raise Unjudgeable(result.error)
    return result.passages


def add_verdict(series: Series, case: Case, passages: Sequence[Passage], llm: Judge) -> None:
    """Ask the model about one contract, and add what it says."""
    verdict = llm(case.requirement.hypothesis, [passage.text for passage in passages])
    if verdict is None:
        return
    named = {passages[place].source for place in verdict.places}
    series.verdicts.append((case.annotation.choice, verdict.verdict))
    if case.evidence:
        series.hits += len(named & case.evidence.keys())
        series.named += len(named)
        series.judged += len(case.evidence)


def figures(series: Mapping[str, Series]) -> dict[str, Any]:
    """Return the figures by requirement and over all."""
    rows = {name: row(each) for name, each in series.items() if each.recalls or each.verdicts}
    every = [each for each in series.values() if each.recalls]
    recalls = {name: [value for each in every for value in each.recalls[name]] for name in RANKINGS}
    means = {name: round(fmean(values), 4) for name, values in recalls.items()}
    asked = [pair for each in series.values() for pair in each.verdicts]
    return {
        "cases": len(recalls[FUSED]),
        f"recall@{DEPTH}": means,
        "ratio": round(means[FUSED] / means[KEYWORDS], 4) if means[KEYWORDS] else None,
        "verdicts": verdict_figures(asked),
        "requirements": rows,
    }


def row(series: Series) -> dict[str, Any]:
    """Return the figures of one requirement."""
    recalls = {name: round(fmean(values), 4) for name, values in series.recalls.items()}
    cases_count = len(next(iter(series.recalls.values()), ()))
    return {
        "title": series.title,
        "cases": cases_count,
        f"recall@{DEPTH}": recalls,
        "verdicts": verdict_figures(series.verdicts),
        "evidence": evidence_figures(series),
    }


def verdict_figures(pairs: Sequence[tuple[Choice, Choice]]) -> dict[str, Any] | None:
    """Return accuracy, and precision and recall of each choice; None without a verdict."""
    if not pairs:
        return None
    choices: dict[str, Any] = {
        choice: asdict(
            detection([said == choice for _, said in pairs], [true == choice for true, _ in pairs])
        )
        for choice in CHOICES
    }
    right = fmean(true == said for true, said in pairs)
    return {"asked": len(pairs), "accuracy": round(right, 4), **choices}


def evidence_figures(series: Series) -> dict[str, float | None] | None:
    """Return how many of the spans a model names are evidence, and how many it names of these."""
    if not series.verdicts:
        return None
    return {
        "precision": series.hits / series.named if series.named else None,
        "recall": series.hits / series.judged if series.judged else None,
    }


def table(figures: Mapping[str, Any]) -> RenderableType:
    """Return a line per requirement, and one for all."""
    key = f"recall@{DEPTH}"
    verdicts = figures["verdicts"]
    more = ("accuracy", "entailed F1", "contradicted F1", "not mentioned F1") if verdicts else ()
    title = f"Evidence recall@{DEPTH} of {figures['cases']} requirements of contracts"
    rows = Table("", "cases", *RANKINGS, *more, title=title, title_justify="left")
    for column in rows.columns[1:]:
        column.justify = "right"
    for each in figures["requirements"].values():
        cells = [digits(each[key].get(name)) for name in RANKINGS]
        rows.add_row(each["title"], str(each["cases"]), *cells, *verdict_cells(each["verdicts"]))
    rows.add_section()
    cells = [digits(figures[key][name]) for name in RANKINGS]
    rows.add_row("all", str(figures["cases"]), *cells, *verdict_cells(verdicts), style="green")
    lines = [f"{FUSED} / {KEYWORDS}: {digits(figures['ratio'])}"]
    if not verdicts:
        lines.append("No verdicts: no model is set for the compliance agent.")
    return Group(rows, *lines)


def verdict_cells(verdicts: Mapping[str, Any] | None) -> list[str]:
    """Return accuracy and F1 of each choice as they are shown."""
    if not verdicts:
        return []
    return [digits(verdicts["accuracy"]), *(digits(verdicts[each]["f1"]) for each in CHOICES)]
