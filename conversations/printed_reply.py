"""Printed reply: an answer in a terminal, its citations by number, a passage, the turn's way."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from agents.documentation.citations.statements import CODE
from agents.models import Envelope
from agents.names import Status
from agents.steps.records import payloads_before
from agents.trace.trace import search_rounds
from agents.words import english_name
from conversations.answers import by_marker, mode_sentence, numbers, without_sources
from conversations.quotation import BEGIN, END, marked_passage
from conversations.transcript import without_items

CODE_OR_MARKER = re.compile(rf"{CODE}|\[(C\d+)\]", re.DOTALL)
MARKED = "bold reverse"
# What can be said next, to a question back and to an answer.
CHOICES = "Type the number of one, or write it in your own words:"
FURTHER = "Type a number to ask about:"
BESIDE = "Near it:"
QUALITIES = {
    "excellent": "what is there fits well",
    "good": "what is there fits",
    "poor": "in vain",
}


def numbered(result: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of a reply with its citations as [1], [2] …, and these in that order.

    They have the shape of `by_marker`.
    """
    text, cited = without_sources(result), by_marker(result["citations"])
    number = numbers(text, cited)

    def rewritten(found: re.Match[str]) -> str:
        return f"[{number[found[1]]}]" if found[1] in number else found[0]

    ordered = sorted(cited, key=lambda each: number[each["marker"]])
    return CODE_OR_MARKER.sub(rewritten, text), ordered


def show_reply(console: Console, result: dict[str, Any], *, once: bool = False) -> None:
    """Print a reply, where it is written, what can be said next, and what it took.

    To who asks but `once`, suggestions have no numbers.
    """
    text, citations = numbered(result)
    actions, is_open = result["suggested_actions"], result["status"] == Status.AWAITING_USER
    console.print(Markdown(without_items(text, actions)))
    show_sources(console, citations)
    if actions:
        console.print(Text(BESIDE if once else CHOICES if is_open else FURTHER, "dim"))
        for place, action in enumerate(actions, start=1):
            console.print(Text.assemble(("  → " if once else f"  {place}  ", "cyan"), action))
    usage = result["usage"]
    said = f"{result['status']}, {result['mode']}, {usage['seconds']} s{_spent(usage)}"
    console.print(Text(f"{said}, turn {result['turn_id']}\n", "dim"), soft_wrap=True)


def show_sources(console: Console, citations: Sequence[dict[str, Any]]) -> None:
    """Print the citations of an answer, one a line and where it can be found below it."""
    for place, citation in enumerate(citations, start=1):
        statuses = dict.fromkeys(quote["status"] for quote in citation["quotes"])
        console.print(
            Text.assemble(
                (f"[{place}] ", "cyan"), (_where(citation), "bold"), f" ({', '.join(statuses)})"
            )
        )
        console.print(Text(f"    {citation['source']}", "dim"), soft_wrap=True)


def _where(citation: dict[str, Any]) -> str:
    version = citation["edition"] or citation["version"]
    place = " — ".join(filter(None, (citation["title"], citation["section"])))
    return f"{place}, version {version}"


def show_passage(console: Console, turn: Envelope, citation: dict[str, Any]) -> None:
    """Print the passage that an answer was made from, what it was quoted for marked."""
    console.print(Text(_where(citation), "bold"))
    console.print(Text(citation["source"], "dim"), soft_wrap=True)
    draws = console.is_terminal and not console.no_color
    console.print(_drawn(marked_passage(turn, citation), draws=draws))
    console.print()


def _drawn(passage: str, *, draws: bool) -> Text:
    """Return a passage, what is marked in another style, or between » and « without styles."""
    if not draws:
        return Text(passage.replace(BEGIN, "»").replace(END, "«"))
    text = Text()
    for piece in re.split(f"({BEGIN}[^{END}]*{END})", passage):
        text.append(piece.strip(BEGIN + END), MARKED if piece.startswith(BEGIN) else "")
    return text


def _spent(usage: dict[str, Any]) -> str:
    """What models took for it; nothing when none was asked."""
    if not usage["model_calls"] + usage["cached_calls"]:
        return ""
    cost = "cost not known" if usage["cost"] is None else f"{usage['cost']:.6f} USD"
    return f", {usage['model_calls']} model calls, {usage['cached_calls']} cached, {cost}"


def way(turn: Envelope, result: dict[str, Any]) -> Iterator[str]:
    """Yield sentences that tell how a turn came to its reply."""
    payload = turn.payload
    if language := payload.get("language"):
        yield f"The message was taken for {english_name(language)}."
    question = payload.get("canonical_question")
    if question and question != payload.get("text"):
        yield f"It was understood as: {question}"
    if route := payload.get("route"):
        yield f"It went the way of: {route}."
    yield from _searches(turn)
    if missing := payload.get("limitations"):
        yield f"What is missing: {'; '.join(missing)}"
    yield from _outcome(payload, result)
    if tools := result["used_tools"]:
        yield f"Tools that were used: {', '.join(tools)}."
    if result["error_id"]:
        yield f"Something went wrong. The operator finds it as {result['error_id']}."
    usage = result["usage"]
    yield f"It took {usage['seconds']} s and {usage['steps']} steps{_spent(usage)}."
    yield f"Every step: python3 manage.py trace {turn.pk}"


def _searches(turn: Envelope) -> Iterator[str]:
    steps = list(turn.steps.all())
    for each in search_rounds(steps, list(payloads_before(turn, steps))):
        fits = QUALITIES.get(each["quality"] or "", "")
        yield f"Search {each['round']} found {len(each['passages'])} passages: {fits}."
        if each["error"]:
            yield f"Only a part of it could run: {each['error']}"
        if (verdict := each["verdict"]) and verdict.get("missing"):
            yield f"What they lack, as was judged: {verdict['missing']}"
    stats = turn.payload.get("search_stats") or {}
    if (certainty := stats.get("certainty")) is not None:
        yield f"How likely the first of them answers: {certainty:.2f} of 1."


def _outcome(payload: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    if reason := (result["clarification"] or {}).get("reason"):
        yield f"It was asked back or declined for this reason: {reason.replace('_', ' ')}."
    citations = result["citations"]
    if citations or result["status"] == Status.COMPLETED:
        form = payload.get("answer_form") or ""
        yield mode_sentence(result["mode"], quotes=bool(citations), form=form)
    if citations:
        statuses = [each["citation_status"] for each in citations]
        counts = (f"{statuses.count(each)} {each}" for each in dict.fromkeys(statuses))
        yield f"Of its cited sentences are: {', '.join(counts)}."
    if decision := payload.get("quality_decision"):
        yield f"The check of the answer said: {decision.replace('_', ' ')}."
