"""Ingest bench: how fast a folder becomes searchable, stage by stage, first and unchanged.

The stages run one after another over all files, so that each has its time; ingestion itself does
them side by side and is timed as a whole. Beside them, on the same texts, the local encoder in
both its forms; and on request the same folder through LangChain.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from django.db import transaction
from rich.table import Table

from assistant.lab import rival
from knowledge import ingestion
from knowledge.embedding import Vectors, registry
from knowledge.embedding.local import LOCAL
from knowledge.errors import Unreadable
from knowledge.ingestion import Findings
from knowledge.ingestion.drafts import Draft, digest, draft, sheets
from knowledge.ingestion.plan import get_or_create_collection
from knowledge.ingestion.store import store
from knowledge.models import Collection
from knowledge.sandbox.reader import Reader
from knowledge.tokens import package_folder

STAGES = ("parse", "chunk", "embed", "store")
STAGED, WHOLE = "bench-staged", "bench-whole"
ENCODED = 128  # texts that both forms of the encoder are given
ROUNDS = 3

Progress = Callable[[str], Any]


@dataclass
class Staged:
    """A folder on its way through the stages, with the seconds each took."""

    findings: Findings
    drafts: list[Draft] = field(default_factory=list)
    vectors: list[Vectors] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: int = 0

    @property
    def texts(self) -> list[str]:
        """What the model is given."""
        return [text for document in self.drafts for text in document.embedding_texts()]


def measure(folder: Path, progress: Progress, *, langchain_python: str = "") -> dict[str, Any]:
    """Return the figures; on servers of its own, as it leaves two collections behind.

    `langchain_python` is a Python that has LangChain, which then does the same in this run.
    Raises NothingToIngest, EmbeddingUnavailable and NotComparable.
    """
    findings = ingestion.find([folder])
    # First, because it is most likely to fail.
    theirs = through_langchain(findings, langchain_python, progress) if langchain_python else None
    registry.default().encode(["The first one loads the model."])
    staged = through_stages(findings, progress)
    first, unchanged = as_a_whole(findings, progress)
    figures: dict[str, Any] = {
        "model": registry.default().name,
        "documents": len(staged.drafts),
        "chunks": len(staged.texts),
        "skipped": staged.skipped,
        "stages": stage_figures(staged),
        "first": rates(first, staged),
        "unchanged": rates(unchanged, staged) | {"times_faster": round(first / unchanged, 1)},
        "encoder": encoders(staged.texts, progress),
    }
    if theirs:
        figures["langchain"] = compared(theirs, figures)
    return figures


def through_stages(findings: Findings, progress: Progress) -> Staged:
    """Parse, chunk, embed and store all files, one stage after another."""
    staged = Staged(findings)
    steps: Iterable[Callable[[Staged], None]] = (parse_and_chunk, embed, keep)
    for step in steps:
        progress(f"stage by stage: {step.__name__.replace('_', ' ')}")
        step(staged)
    return staged


def parse_and_chunk(staged: Staged) -> None:
    """Read every file in the process that parses, and cut it up."""
    parsed = chunked = 0.0
    with Reader() as reader:
        for file in staged.findings.files:
            begin = middle = perf_counter()
            try:
                body = file.read()
                pages, _ = reader.read(file.origin, body)
                middle = perf_counter()
                staged.drafts += [
                    draft(sheet, file.folders) for sheet in sheets(file.origin, digest(body), pages)
                ]
            except Unreadable:
                staged.skipped += 1
            parsed += middle - begin
            chunked += perf_counter() - middle
    staged.seconds |= {"parse": parsed, "chunk": chunked}


def embed(staged: Staged) -> None:
    """Encode the chunks of every document."""
    begin = perf_counter()
    vectors = registry.default().encode(staged.texts)
    staged.seconds["embed"] = perf_counter() - begin
    place = 0
    for document in staged.drafts:
        staged.vectors.append(vectors[place : place + len(document.parts)])
        place += len(document.parts)


def keep(staged: Staged) -> None:
    """Store every document in a transaction of its own."""
    collection = get_or_create_collection(STAGED)
    begin = perf_counter()
    for document, vectors in zip(staged.drafts, staged.vectors, strict=True):
        with transaction.atomic():
            store(collection, document, vectors)
    staged.seconds["store"] = perf_counter() - begin


def as_a_whole(findings: Findings, progress: Progress) -> tuple[float, float]:
    """Return the seconds of ingesting the folder, and of ingesting it again unchanged."""
    seconds = []
    registry.forget()
    registry.default().encode(["The first one loads the model."])
    Collection.objects.filter(name=WHOLE).delete()
    for name in ("first run", "unchanged run"):
        progress(f"as a whole: {name}")
        begin = perf_counter()
        ingestion.ingest(findings, collection=WHOLE)
        seconds.append(perf_counter() - begin)
    return seconds[0], seconds[1]


def stage_figures(staged: Staged) -> dict[str, dict[str, float]]:
    """Return seconds and share of each stage."""
    total = sum(staged.seconds.values())
    return {
        name: {
            "seconds": round(staged.seconds[name], 3),
            "share": round(staged.seconds[name] / total, 3),
        }
        for name in STAGES
    }


def rates(seconds: float, staged: Staged) -> dict[str, float]:
    """Return the seconds as documents and chunks per second."""
    return {
        "seconds": round(seconds, 3),
        "documents_per_s": round(len(staged.drafts) / seconds, 2),
        "chunks_per_s": round(len(staged.texts) / seconds, 2),
    }


def encoders(texts: Sequence[str], progress: Progress) -> dict[str, float]:
    """Return passages per second of the local encoder for passages, and of its exact form.

    Both take turns, so that noise of the machine hits them alike; the best round counts.
    """
    runtime = LOCAL.runtime()
    # Spread over the folder: the first documents may be the shortest.
    sample = list(texts)[:: max(1, len(texts) // ENCODED)][:ENCODED]
    best: dict[str, float] = {}
    for number in range(ROUNDS):
        for kind in ("passage", "question"):
            progress(f"encoder: {kind}, round {number + 1} of {ROUNDS}")
            begin = perf_counter()
            runtime.encode(sample, kind=kind)
            best[kind] = max(best.get(kind, 0.0), len(sample) / (perf_counter() - begin))
    return {
        "passages_per_s": round(best["passage"], 1),
        "fp32_per_s": round(best["question"], 1),
        "ratio": round(best["passage"] / best["question"], 2),
    }


def through_langchain(findings: Findings, python: str, progress: Progress) -> dict[str, Any]:
    """Return LangChain's chunks and seconds for the same files on the same PostgreSQL.

    Raises NotComparable.
    """
    progress("the same files through LangChain")
    return rival.ingestion(python, [file.path for file in findings.files], package_folder())


def compared(theirs: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """Return LangChain's figures, and how many times faster ours are."""
    rate = theirs["chunks"] / theirs["first"]
    return {
        "chunks": theirs["chunks"],
        "first_seconds": round(theirs["first"], 3),
        "unchanged_seconds": round(theirs["again"], 3),
        "chunks_per_s": round(rate, 2),
        "times_faster_by_chunks": round(figures["first"]["chunks_per_s"] / rate, 2),
        "times_faster_first": round(theirs["first"] / figures["first"]["seconds"], 2),
        "times_faster_unchanged": round(theirs["again"] / figures["unchanged"]["seconds"], 1),
    }


def table(figures: dict[str, Any]) -> Table:
    """Return how fast a folder becomes searchable, stage by stage."""
    title = f"{figures['documents']} documents, {figures['chunks']} chunks, {figures['model']}"
    rows = Table("", "seconds", "chunks/s", "", title=title)
    for name, stage in figures["stages"].items():
        rows.add_row(name, str(stage["seconds"]), "", f"{stage['share']:.0%}")
    rows.add_section()
    for name in ("first", "unchanged"):
        rate = figures[name]
        faster = f"{rate['times_faster']} times faster" if "times_faster" in rate else ""
        rows.add_row(f"{name} run", str(rate["seconds"]), str(rate["chunks_per_s"]), faster)
    if theirs := figures.get("langchain"):
        rows.add_section()
        for name in ("first", "unchanged"):
            ratio = f"Docent is {theirs[f'times_faster_{name}']} times faster"
            rows.add_row(f"LangChain, {name} run", str(theirs[f"{name}_seconds"]), "", ratio)
    rows.add_section()
    encoder = figures["encoder"]
    rows.add_row("encoder", "", str(encoder["passages_per_s"]), f"{encoder['ratio']} times fp32")
    return rows
