"""Report: what became of every file of an ingestion."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Outcome = Literal["new", "changed", "unchanged"]


@dataclass(frozen=True)
class Problem:
    """Something about a file that whoever ingests it should know."""

    source: str
    reason: str


@dataclass
class Report:
    """The outcome of one ingestion: sources by what became of them."""

    collection: str
    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)  # why → how many files
    chunks: int = 0  # written
    seconds: float = 0.0

    def note(self, outcome: Outcome, source: str) -> None:
        """Record what became of a document."""
        {"new": self.new, "changed": self.changed, "unchanged": self.unchanged}[outcome].append(
            source
        )

    @property
    def is_useful(self) -> bool:
        """Whether the collection is now as the files say, at least in part."""
        return bool(self.new or self.changed or self.unchanged or self.removed)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)
