"""Assessment report: the rows of a batch as a table, as Markdown and as JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from agents.analysis.obligations import LIKELY, SURE
from agents.analysis.shapes import Evidence
from agents.library.assessment import Row
from agents.names import Status

LONGEST_QUOTE = 300
NEAREST = 3  # passages that are quoted where nobody judged
# What the columns of the table count: with a model verdicts, without one how near passages are.
JUDGED = {"compliant": "compliant", "gap": "gaps", "violation": "violations", "": "not judged"}
NEAR = {"high": "surely near", "medium": "perhaps near", "low": "nothing near"}
VERDICTS: Mapping[str, str] = {
    "compliant": "Compliant.",
    "gap": "Gap: nothing was found that meets it.",
    "violation": "Violation.",
    "": "Not judged.",
}


def table(rows: Sequence[Row], title: str) -> Table:
    """Return a line per document, with how many requirements came to what."""
    by_model = any(row.turn for row in rows)
    headings = JUDGED if by_model else NEAR
    first = "questions" if by_model else "requirements"
    shown = Table("Document", first, title=title, title_justify="left")
    for heading in (*headings.values(), *(["without an answer"] if by_model else [])):
        shown.add_column(heading, justify="right")
    for document in dict.fromkeys(row.document_id for row in rows):
        own = [row for row in rows if row.document_id == document]
        counts = Counter(_counted(own) if by_model else map(nearness, own))
        cells = [str(counts[each]) for each in headings]
        unanswered = [str(sum(not is_answered(row) for row in own))] if by_model else []
        shown.add_row(own[0].title, str(len(own)), *cells, *unanswered)
    return shown


def counts_of(rows: Sequence[Row]) -> dict[str, int]:
    """Return what all of it came to → how often, in words."""
    by_model = any(row.turn for row in rows)
    counts = Counter(_counted(rows) if by_model else map(nearness, rows))
    return {words: counts[each] for each, words in (JUDGED if by_model else NEAR).items()}


def _counted(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield from [each.verdict for each in row.judged] or ([""] if is_answered(row) else [])


def is_answered(row: Row) -> bool:
    """Whether the turn of a row came to an answer."""
    return row.status == Status.COMPLETED


def nearness(row: Row) -> str:
    """Return how sure search is that the document speaks of the requirement."""
    sure = row.certainty or 0.0
    return "high" if sure >= SURE else "medium" if sure >= LIKELY else "low"


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
        lines += _answered(row) if row.turn else _nearest(row)
    return "\n".join(lines)


def _nearest(row: Row) -> list[str]:
    lines = ["Nobody judged this; these passages are nearest.", ""]
    return lines + [line for each in row.evidence[:NEAREST] for line in _quoted(each)]


def _answered(row: Row) -> list[str]:
    lines = [f"Not answered ({row.status}).", ""] if not is_answered(row) else []
    lines += [row.answer, ""]
    known = {each.id: each for each in row.evidence}
    for each in row.judged:
        place = f" ({each.section})" if each.section else ""
        said = f"{VERDICTS[each.verdict]} {each.explanation}".strip()
        lines += [f"- **{each.requirement}**{place}: {said}", ""]
        for name in each.named:
            lines += _quoted(known[name], "  ") if name in known else []
    return [*lines, f"Turn {row.turn}.", ""]


def _quoted(evidence: Evidence, indent: str = "") -> list[str]:
    quote = " ".join(evidence.text.split())[:LONGEST_QUOTE]
    place = " > ".join(filter(None, (evidence.title, evidence.section)))
    return [
        f"{indent}> {quote}",
        f"{indent}>",
        f"{indent}> {evidence.id}, {place} (version {evidence.version})",
        "",
    ]


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON values."""
    return [row.model_dump(mode="json", exclude={"key"}) | {"verdict": row.verdict} for row in rows]
