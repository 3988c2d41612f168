"""Shapes: what orchestrator and specialists hand each other, from the plan to the last gap.

Passages are named by the ids of `agents.analysis.evidence`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agents.names import SPECIALISTS, Role

QueryType = Literal[
    "simple_search", "cross_doc", "compliance", "risk", "synthesis", "reporting", "unknown"
]
Level = Literal["low", "medium", "high", "critical"]
Verdict = Literal["compliant", "gap", "violation"]
Unit = Annotated[float, Field(ge=0, le=1)]
# How grave what a specialist found is, from 0, which is nothing, to 4.
GRAVITY: Mapping[str, int] = {
    "low": 1,
    "medium": 2,
    "high": 3,
    "critical": 4,
    "compliant": 0,
    "gap": 2,
    "violation": 4,
}


class Shape(BaseModel):
    """What a model is asked for, or what is kept of it."""

    model_config = ConfigDict(frozen=True)


class Item(Shape):
    """One thing that a specialist found, with the passages that show it."""

    evidence: list[str] = Field(description="ids of the passages that show it")

    @property
    def gravity(self) -> int:
        """How grave it is, 0 to 4."""
        values = (getattr(self, name, "") for name in ("verdict", "severity"))
        return max((GRAVITY.get(str(value), 0) for value in values), default=0)


class Finding(Item):
    """Something that documents say about the question."""

    statement: str


class Kind(Item):
    """What kind of document one is."""

    document: str = Field(description="its title")
    type: str = Field(description="contract, policy, law, report, manual, …")
    domain: str = Field(description="legal, technical, financial, …")
    complexity: Literal["low", "medium", "high"]
    language: str
    sensitivity: Literal["public", "internal", "confidential", "secret"]


class Requirement(Item):
    """One thing that can be checked by itself."""

    id: str = Field(description="REQ-001 and so on")
    requirement: str
    source_section: str = Field(description="heading or number of its section, like § 15 (2)")
    severity: Literal["mandatory", "conditional", "recommended"]
    applicability: str = Field(description="to whom or what it applies")
    target: str = Field(description="the law, policy or contract it is from")


class Judgement(Item):
    """Whether a requirement is met."""

    requirement_id: str
    verdict: Verdict
    explanation: str
    confidence: Unit


class Clash(Item):
    """Something that a document says against what is required, whichever requirement that is."""

    statement: str
    verdict: Literal["gap", "violation"]
    explanation: str


class Risk(Item):
    """What can go wrong."""

    kind: Literal["legal", "financial", "operational", "compliance", "reputational"]
    risk: str
    severity: Level
    likelihood: Literal["unlikely", "possible", "likely"]
    mitigation: str


class AuditedCitation(Item):
    """A citation or reference in a document, and what four checks of it say."""

    citation: str = Field(description="as it is written")
    exists: bool
    says_so: bool = Field(description="what it cites says what is claimed")
    complete: bool
    well_formed: bool
    problem: str = Field(description="what is wrong with it; empty: nothing")


class Gap(Item):
    """What is missing, contradictory or out of date."""

    kind: Literal["regulatory", "coverage", "consistency", "citation", "temporal"]
    gap: str
    severity: Level


class Given(Shape):
    """What a specialist gives: a summary, and its items in lists."""

    summary: str = Field(description="one to three sentences")

    def lists(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield the names of its lists of items, and these."""
        for name in type(self).model_fields:
            if isinstance(value := getattr(self, name), list):
                yield name, value

    @property
    def items(self) -> list[Item]:
        """All that was found."""
        return [item for _, items in self.lists() for item in items]


class Findings(Given):
    """What the extractor gives."""

    findings: list[Finding]


class Classification(Given):
    """What the classifier gives."""

    documents: list[Kind]


class Checklist(Given):
    """What the requirement extractor gives."""

    target: str = Field(description="the law, policy or contract as a whole")
    requirements: list[Requirement]


class Verdicts(Given):
    """What compliance gives: from the requirements to the documents, and the other way."""

    verdicts: list[Judgement]
    clashes: list[Clash]


class Risks(Given):
    """What the risk verifier gives."""

    risks: list[Risk]


class Audit(Given):
    """What the citation auditor gives."""

    citations: list[AuditedCitation]


class Gaps(Given):
    """What the gap synthesizer gives."""

    gaps: list[Gap]


class Output(Shape):
    """What a specialist hands on, whether it succeeded or not."""

    result: dict[str, Any] = {}  # of the specialist's shape; empty where it failed
    reason: str = ""  # why it failed; empty: it did not
    rounds: int = 0  # in which tools were called
    stopped: str = ""  # why its model was told to answer
    dropped: int = 0  # passages that it named and no tool gave


Reason = Literal["model", "shape", "tool", "budget", "time", "checklist", "fault"]


class Shortcoming(Shape):
    """What could not be done."""

    role: Role
    reason: Reason
    detail: str = ""  # for the operator


class Estimate(Shape):
    """What a plan may come to, as steps of its roles did lately."""

    calls: int
    tokens: int
    cost: float | None  # US dollars; None: the price of a model is not known
    is_guess: bool = False  # not all of the roles have worked lately


class Plan(Shape):
    """Who does what, in which order; those of one step work at the same time."""

    query_type: QueryType = "unknown"
    complexity_score: int = Field(default=0, ge=0, le=100)
    vagueness_score: Unit = 0.0
    steps: list[list[Role]] = []
    origin: Literal["model", "default", "rules"] = "model"
    problem: str = ""  # what was wrong with that of the model
    estimate: Estimate | None = None

    @property
    def is_undone(self) -> bool:
        """Whether no model could plan an analysis that was asked for."""
        return self.origin == "rules"


class Request(Shape):
    """Who is to work once more before the orchestrator answers, and why."""

    specialists: list[Role] = []
    why: str = ""


SHAPES: dict[Role, type[Given]] = {
    Role.EXTRACTOR: Findings,
    Role.CLASSIFIER: Classification,
    Role.REQUIREMENT_EXTRACTOR: Checklist,
    Role.COMPLIANCE: Verdicts,
    Role.RISK_VERIFIER: Risks,
    Role.CITATION_AUDITOR: Audit,
    Role.GAP_SYNTHESIZER: Gaps,
}
T = TypeVar("T", bound=Given)


def given(outputs: Mapping[Role, Output]) -> dict[Role, Given]:
    """Return what the specialists found that succeeded, in the order in which they are named."""
    return {
        role: SHAPES[role].model_validate(outputs[role].result)
        for role in SPECIALISTS
        if role in outputs and outputs[role].result
    }


def problem_of(steps: Sequence[Sequence[str]], done: Sequence[str] = ()) -> str:
    """Return what is wrong with the steps of a plan, for a model; empty: nothing.

    `done` are the specialists that have given something already.
    """
    known = [str(role) for role in SPECIALISTS]
    named = [role for step in steps for role in step]
    if not named:
        return "the plan names no specialist"
    if unknown := [role for role in named if role not in known]:
        return f"there is no specialist {', '.join(unknown)}; there are: {', '.join(known)}"
    if len(named) != len(set(named)):
        return "the plan names a specialist twice"
    before = set(done)
    for step in steps:
        if Role.COMPLIANCE in step and Role.REQUIREMENT_EXTRACTOR not in before:
            return "compliance needs requirement_extractor in an earlier step"
        before |= set(step)
    return ""


class Evidence(Shape):
    """A passage that a tool gave, under an id by which specialists name it.

    Everything but the score is the same whoever found it, and however.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^p[0-9a-f]{8}$")
    document_id: str
    chunk_id: int
    version: int
    edition: str = ""  # the document's own version, as it names it
    title: str
    section: str  # "Heading > Subheading", empty at the top of a document
    crumbs: list[str] = []
    source: str
    language: str
    text: str
    score: Unit | None = None  # highest cosine with what was asked; None where none is known
