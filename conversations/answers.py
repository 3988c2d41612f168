"""Answers: what clients and pages get for a turn, its text as safe HTML and its citations."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Subquery
from django.utils.safestring import SafeString, mark_safe
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from agents.attributes import Source
from agents.documentation.passages import source_list
from agents.models import Envelope
from agents.names import Status
from agents.trace.tool_use import used_tools
from agents.trace.usage import usage_of_turn
from agents.words import ENGLISH
from conversations.models import Conversation
from conversations.turn_memory import last_agent
from knowledge.safe_html import cleaner, parser

MARKER = re.compile(r"\[(C\d{1,3})\]")
# What a marker may lead to, here or on the page of what it cites.
# Also below the address of a frame, see `conversations.widget`.
INNER_LINK = re.compile(
    r"(?:#C\d{1,3}|(?:/widget/[\w:/-]+)?/turns/[\da-f-]{36}/cited/C\d{1,3}/#place)\Z", re.ASCII
)
MODEL = "Written by a language model from the documents it cites."
MIXED = "Partly written by a language model; what it did not do was done by rules."
UNWRITTEN = "Quoted from the documents as it stands; a language model helped, but did not write it."
QUOTED = "Quoted from the documents as it stands, without a language model."
FIXED = "Put together from fixed words, without a language model."
# A turn that declines has ended all the same; one that staff have says nothing.
ASKING = frozenset({Status.AWAITING_USER, Status.COMPLETED})
STATE_EXCERPT = (
    "stage",
    "canonical_question",
    "context_type",
    "search_quality",
    "search_rounds",
    "search_error",
    "answer_form",
    "quality_decision",
    "quality_score",
    "quality_returns",
    "clarification_reason",
    "clarification_type",
    "limitations",
    "route_hint",
    "state_updates",
)


def reply(envelope: Envelope) -> dict[str, Any]:
    """Return the turn as `POST /api/chat/` shows it; lists may be empty.

    `confidence` is 0..1 or None when no answer was generated. `usage` counts steps, seconds,
    model calls made and spared, and tokens; `cost` is in US dollars, None when not known.
    """
    payload = envelope.payload
    answered = envelope.status == Status.COMPLETED
    conversation = Conversation.objects.filter(pk=envelope.conversation_id).first()
    return {
        "session_id": conversation.session if conversation else "",
        "turn_id": str(envelope.pk),
        "status": envelope.status,
        "reply": payload.get("response", "") if envelope.ended else "",
        "route": payload.get("route"),
        "last_agent": last_agent(envelope),
        "language": payload.get("language"),
        "sources": payload.get("sources_used", []) if answered else [],
        "citations": payload.get("citations_used", []) if answered else [],
        "clarification": clarification(envelope),
        "suggested_actions": payload.get("suggested_actions", []),
        "used_tools": used_tools(envelope.pk),
        "confidence": payload.get("generation_confidence") if answered else None,
        "mode": payload.get("mode", "extractive"),
        "error_id": envelope.error_id or None,
        "usage": {
            "steps": envelope.process_count,
            "seconds": _seconds(envelope),
            **usage_of_turn(envelope.pk),
        },
        "state_excerpt": {name: payload[name] for name in STATE_EXCERPT if name in payload}
        | of_conversation(conversation, envelope),
    }


def clarification(envelope: Envelope) -> dict[str, Any] | None:
    """Return what a turn asks of its user, or that it declines; None where it does neither."""
    payload = envelope.payload
    if "questions_asked" not in payload or envelope.status not in ASKING:
        return None
    return {
        "type": payload["clarification_type"],
        "reason": payload["clarification_reason"],
        "questions": payload["questions_asked"],
    }


def _seconds(envelope: Envelope) -> float:
    """Return how long a turn took; PostgreSQL dates its end back to where its transaction began."""
    return max(0.0, round((envelope.update_ts - envelope.create_ts).total_seconds(), 3))


def of_conversation(conversation: Conversation | None, envelope: Envelope) -> dict[str, Any]:
    """Return what an excerpt says of the conversation: its state and its length in messages.

    The state is that of now. The length is that at the end of the turn, its own messages included.
    """
    if conversation is None:
        return {}
    messages = conversation.messages.all()
    last = messages.filter(turn=envelope).order_by("-created").values("created")[:1]
    own = {"assistant": conversation.assistant} if conversation.assistant else {}
    return own | {
        "last_agent": conversation.last_agent,
        "context_flags": conversation.context_flags,
        "billing_case_id": conversation.billing_case_id,
        "refund_form": conversation.refund_form,
        "history_length": messages.filter(created__lte=Subquery(last)).count(),
    }


def without_sources(reply: dict[str, Any]) -> str:
    """Return the text of a reply without the list of sources that response put at its end.

    For where the citations themselves are shown; a text that ends otherwise stays whole.
    """
    sources = [Source.model_validate(source) for source in reply["sources"]]
    listing = source_list(sources, reply["language"] or ENGLISH)
    return str(reply["reply"]).removesuffix(listing).rstrip()


def mode_sentence(mode: str, *, quotes: bool, form: str = "written") -> str:
    """Return the sentence that tells a reader who wrote what they read.

    `form` is the answer's, as response wrote it: "written" by a model, or quoted.
    """
    if mode == "extractive":
        return QUOTED if quotes else FIXED
    if mode == "model":
        return MODEL
    return MIXED if form == "written" or not quotes else UNWRITTEN


def by_marker(citations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry per marker, in order, with all `quotes` of the answer that carry it."""
    entries: dict[str, dict[str, Any]] = {}
    for citation in citations:
        entry = entries.setdefault(citation["marker"], {**citation, "quotes": []})
        text, status = citation["quote"], citation["citation_status"]
        entry["quotes"].append({"text": text, "html": quote_html(text), "status": status})
        entry["is_web"] = citation["source"].startswith(("https://", "http://"))
    return list(entries.values())


def numbers(text: str, citations: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Return the number of each marker that an answer cites, from 1, as a reader comes by them."""
    known = {citation["marker"] for citation in citations}
    met = [marker for marker in MARKER.findall(text) if marker in known]
    rest = sorted(known.difference(met), key=lambda marker: int(marker[1:]))
    return {marker: place for place, marker in enumerate(dict.fromkeys([*met, *rest]), start=1)}


def answer_html(
    text: str,
    markers: Iterable[str] = (),
    link: Callable[[str], tuple[str, str]] = lambda marker: (f"[{marker}]", f"#{marker}"),
) -> SafeString:
    """Return the Markdown of an answer as safe HTML, each `[C1]` of `markers` a link.

    `link` says what a marker is called and where it leads.
    """
    rendered = _PARSER.render(text, {"markers": {marker: link(marker) for marker in markers}})
    return mark_safe(_CLEANER.clean(rendered))  # noqa: S308 cleaned just now


def quote_html(text: str) -> SafeString:
    """Return what is quoted as safe HTML; one sentence without a paragraph around it."""
    render = _PARSER.render if "\n" in text else _PARSER.renderInline
    rendered = render(text, {"markers": {}})
    return mark_safe(_CLEANER.clean(rendered))  # noqa: S308 cleaned just now


def _link_markers(state: StateCore) -> None:
    """Make links of the markers in running text; those in code stay as they are."""
    for token in state.tokens:
        if token.children:
            token.children = [
                part
                for child in token.children
                for part in (
                    _split(child, state.env["markers"]) if child.type == "text" else (child,)
                )
            ]


def _split(text: Token, markers: Mapping[str, tuple[str, str]]) -> Iterator[Token]:
    end = 0
    for marker in MARKER.finditer(text.content):
        if marker[1] not in markers:
            continue
        yield Token("text", "", 0, content=text.content[end : marker.start()])
        label, address = markers[marker[1]]
        yield Token("link_open", "a", 1, attrs={"href": address})
        yield Token("text", "", 0, content=label)
        yield Token("link_close", "a", -1)
        end = marker.end()
    yield Token("text", "", 0, content=text.content[end:])


# Without reference definitions: "[C1]: https://…" in a quoted document must not capture a marker.
_PARSER = parser().disable("reference")
_PARSER.core.ruler.push("markers", _link_markers)
_CLEANER = cleaner(lambda address: address if INNER_LINK.match(address) else None)
