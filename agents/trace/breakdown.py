"""Breakdown: what each role of a turn wrote, in the order of the turn, what matters first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.attributes import ATTRIBUTES, BOOKKEEPING, MEMORY, TRACE, UNIVERSAL
from agents.contract import REGISTRY
from agents.models import Envelope, Step
from agents.names import Role
from knowledge.read_only_admin import pretty

EMPTY: tuple[Any, ...] = (None, "", [], {})
# What stands on the page itself, and is not told again below.
REPLY = frozenset({"response", "citations_used", "sources_used", "text"})
# Characters of what is shown without being unfolded.
SHORT = 160
# Of what a search knows beside its passages, what tells whether they were taken for an answer.
OF_SEARCH = ("confidence", "threshold", "certainty", "chunks", "corrected", "absent", "unproven")
ASKED = Role.CLARIFICATION
SAW, KEPT = "what the turn saw when it began", "bookkeeping of the manager"


@dataclass(frozen=True)
class Group:
    """What one role wrote: `facts` in a few words, the `rest` as JSON; both by name."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    rest: list[tuple[str, str]] = field(default_factory=list)


def breakdown(envelope: Envelope, steps: Sequence[Step]) -> list[Group]:
    """Return what is in the payload, a group for each role in the order in which they began.

    What nobody but a reader of traces needs is among the rest. The groups of what the turn saw and
    of what the manager kept come last.
    """
    writers = writers_of(steps)
    groups = {title: Group(title) for title in (*(step.role for step in steps), SAW, KEPT)}
    if ASKED in groups and (askers := askers_of(envelope.payload)):
        groups[ASKED].facts.append(("asked by", ", ".join(askers)))
    # In the order in which they are declared: PostgreSQL keeps none.
    for name in (name for name in ATTRIBUTES if name in envelope.payload):
        value = envelope.payload[name]
        if value in EMPTY or name in REPLY:
            continue
        title = writers.get(name) or (SAW if name in MEMORY else KEPT)
        add(groups[title], name, value, is_folded=name in TRACE or title in {SAW, KEPT})
    return [group for group in groups.values() if group.facts or group.rest]


def writers_of(steps: Sequence[Step]) -> dict[str, str]:
    """Return attribute → the role whose word stands, of those that took part.

    That is the last that wrote it. What nobody noted is of the first that may write it.
    """
    roles = [Role(step.role) for step in steps if step.role in REGISTRY]
    declared = {name: role for role in reversed(roles) for name in REGISTRY[role].contract.writes}
    written = {name: step.role for step in steps if step.role in roles for name in step.output}
    writers = {name: written.get(name, role) for name, role in declared.items()}
    asked = dict.fromkeys(UNIVERSAL, ASKED) if ASKED in roles else {}
    own = {name: role for name, role in writers.items() if name not in {*UNIVERSAL, *BOOKKEEPING}}
    return own | asked


def askers_of(payload: dict[str, Any]) -> list[str]:
    """Return the roles that made the request which was passed on to the user."""
    reason, message = payload.get("clarification_reason"), payload.get("clarification_message")
    return [
        role
        for role, request in (payload.get("clarification_requests") or {}).items()
        if (request["reason"], request["message"]) == (reason, message or "")
    ]


def add(group: Group, name: str, value: Any, *, is_folded: bool) -> None:
    """Put an attribute where it belongs."""
    if name == "search_stats":
        for part in OF_SEARCH:
            if value.get(part) not in EMPTY:
                group.facts.append((part, in_words(value[part])))
    short = "" if is_folded else in_words(value)
    if short and len(short) <= SHORT and "\n" not in short:
        group.facts.append((name.replace("_", " "), short))
    else:
        text = value if isinstance(value, str) else pretty(value)
        group.rest.append((name, text))


def in_words(value: Any) -> str:
    """Return a value in a few words; nothing for what is too much of a structure."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3g}"
        case str() | int():
            return str(value)
        case list() if all(isinstance(each, str) for each in value):
            return ", ".join(value)
        case dict() if all(isinstance(each, str | int | float | bool) for each in value.values()):
            return ", ".join(f"{name} {in_words(each)}" for name, each in value.items())
    return ""
