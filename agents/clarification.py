"""Clarification: says what is unclear or out of reach and what can be done instead."""

from collections import Counter
from collections.abc import Iterable, Sequence

from django.conf import settings

from agents.attributes import DECLINING, Passage, Reason
from agents.contract import View, Writes, agent
from agents.languages import ENGLISH, base
from agents.names import Role
from agents.phrases import Phrase, capabilities, reason_said

# Reasons to which one of the options may be the answer.
OPEN = frozenset(
    {
        Reason.AMBIGUOUS_QUERY,
        Reason.MULTIPLE_TOPICS,
        Reason.MISSING_CONTEXT,
        Reason.VAGUE_REQUEST,
    }
)
# Reasons of which the asking agent knows particulars worth showing.
PARTICULAR = frozenset(
    {Reason.INSUFFICIENT_CONTEXT, Reason.MISSING_DETAILS, Reason.QUALITY_INSUFFICIENT}
)
MOST_OPTIONS = 4
# Below this cosine a passage is about something else: all-MiniLM-L6-v2.
CLOSE = 0.35
LONGEST_OPTION = 70


def options(passages: Sequence[Passage]) -> list[str]:
    """What to choose from, best first: titles, with the section where one title is not enough.

    Different documents come before several sections of one.
    """
    if len({p.document_id for p in passages}) == 1:
        return _distinct(_section(p) or p.title for p in passages)
    seen: Counter[str] = Counter()
    ranked = []
    for rank, passage in enumerate(passages):
        ranked.append((seen[passage.document_id], rank, passage))
        seen[passage.document_id] += 1
    firsts = [p for place, _, p in sorted(ranked, key=lambda each: each[:2]) if place == 0]
    return _distinct(_named(p) for p in firsts)


def _section(passage: Passage) -> str:
    return passage.section.rsplit(" > ", maxsplit=1)[-1].strip()


def _named(passage: Passage) -> str:
    """The title; the heading instead when the title is too long to choose by."""
    title = passage.title.strip() or _section(passage)
    return (_section(passage) or title) if len(title) > LONGEST_OPTION else title


def _distinct(names: Iterable[str]) -> list[str]:
    found: dict[str, str] = {}
    for name in names:
        if name:
            found.setdefault(name.casefold(), name)
    return list(found.values())[:MOST_OPTIONS]


def _type(reason: Reason, offered: Sequence[str]) -> str:
    if reason in DECLINING:
        return "scope"
    if reason in (Reason.AMBIGUOUS_QUERY, Reason.MULTIPLE_TOPICS):
        return "ambiguity"
    return "choice" if reason in OPEN and len(offered) > 1 else "context"


def _listed(lead: Phrase, offered: Sequence[str], language: str) -> str:
    return "\n".join([lead.said_in(language), *(f"- {option}" for option in offered)])


def _lead(reason: Reason, passages: Sequence[Passage]) -> Phrase:
    """What the options are, said no stronger than they were found."""
    if reason in OPEN and reason is not Reason.VAGUE_REQUEST:
        return Phrase.MEANT
    near = any(p.cosine is None or p.cosine >= CLOSE for p in passages)
    return Phrase.NEARBY if near and reason in PARTICULAR else Phrase.COVERED


def _asked(view: View, reason: Reason, offered: Sequence[str], language: str) -> list[str]:
    """The paragraphs of a question back: what is unclear, then what to choose from."""
    passages = view.search_results or []
    first = [reason_said(reason, language)]
    if reason in PARTICULAR:
        first.extend(filter(None, [view.clarification_message]))
        written = sorted({p.language for p in passages} - {base(language)})
        if written and view.translation_confidence == 0:
            first.append(Phrase.NOT_TRANSLATED.said_in(language, languages=", ".join(written)))
    paragraphs = [" ".join(first)]
    if reason in DECLINING:
        paragraphs.append(capabilities(language, settings.DOMAIN_NAME))
    if offered:
        paragraphs.append(_listed(_lead(reason, passages), offered, language))
    elif reason not in DECLINING:
        paragraphs.append(Phrase.REPHRASE.said_in(language))
    # The router's questions are English.
    if base(language) == ENGLISH:
        paragraphs.extend(view.clarifying_questions or [])
    return paragraphs


@agent(
    Role.CLARIFICATION,
    reads=(
        "needs_clarification",
        "clarification_reason",
        "clarification_message",
        "language",
        "stage",
        "clarifying_questions",
        "search_results",
        "history",
        "clarification_rounds",
        "offers",
        "translation_confidence",
    ),
    writes=("response", "clarification_type", "suggested_actions"),
)
def ask(view: View) -> Writes:
    """Say why, then offer what exists; after the last round close instead of asking."""
    language = view.language or ENGLISH
    reason = view.clarification_reason or Reason.INSUFFICIENT_CONTEXT
    offered = options(view.search_results or []) or (view.offers or [])[:MOST_OPTIONS]
    actions = offered or [Phrase.SUGGEST_HELP.said_in(language)]
    if (view.clarification_rounds or 0) >= settings.MAX_CLARIFICATION_ROUNDS:
        paragraphs = [
            Phrase.CLOSING.said_in(language),
            capabilities(language, settings.DOMAIN_NAME),
        ]
        if offered:
            paragraphs.append(_listed(Phrase.COVERED, offered, language))
    else:
        paragraphs = _asked(view, reason, offered, language)
    return {
        "response": "\n\n".join(paragraphs),
        "clarification_type": _type(reason, offered),
        "suggested_actions": actions,
    }
