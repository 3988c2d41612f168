"""trace: prints what happened in a turn."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from agents.models import Envelope
from agents.names import Role
from agents.trace.breakdown import OF_SEARCH
from agents.trace.trace import trace

TEXT_LENGTH = 90
PASSAGES_SHOWN = 3
EMPTY: tuple[Any, ...] = (None, "", [], {})


class Command(BaseCommand):
    """Prints a turn step by step."""

    help = "Print a turn: every step, what it wrote, its calls of models and tools, its times."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add TURN, --json and --full."""
        parser.add_argument("turn", help="id of the turn, or an error id a user was shown")
        parser.add_argument("--json", action="store_true", help="everything, as JSON")
        parser.add_argument(
            "--full", action="store_true", help="shorten nothing; with what models were told"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the trace."""
        turn = trace(find_turn(options["turn"]), staff=True)
        if options["json"]:
            self.stdout.write(json.dumps(turn, indent=2, ensure_ascii=False))
            return
        console, full = Console(), options["full"]
        console.print(
            f"Turn {turn['turn_id']}: {turn['status']} in {turn['seconds']} s, {turn['mode']}"
        )
        console.print(Text(f"Plan: {_line(turn['plan'])}"))
        if turn["analysis"]:
            console.print(Text(_analysis(turn["analysis"])))
        for line in _steps(turn["steps"], full=full):
            console.print(line)
        wrote = {step["number"]: step["wrote"] for step in turn["steps"]}
        for search in turn["iterations"]:
            stats = wrote[search["step"]].get("search_stats") or {}
            console.print(Text(_search(search, stats, full=full)))
        roles = turn["usage"].pop("roles")
        for name, usage in {"Usage": turn["usage"], **roles}.items():
            console.print(Text(f"{name}: {_line(usage)}"))
        if full:
            _conversations_with_models(console, turn["steps"])
        for fault in turn["faults"]:
            console.print(f"[red]{fault['code']}[/] {fault['summary']}")


def find_turn(name: str) -> Envelope:
    """Return the turn of this id, or of the error of this id. Raises CommandError."""
    by_fault = Envelope.objects.filter(error_id=name).first()
    if by_fault:
        return by_fault
    try:
        return Envelope.objects.get(pk=uuid.UUID(name))
    except (ValueError, Envelope.DoesNotExist):
        raise CommandError(f"There is no turn and no error {name!r}.") from None


def _steps(steps: list[dict[str, Any]], *, full: bool) -> Iterator[RenderableType]:
    """Of each step a line, and indented below it what it wrote and its model calls."""
    for step in steps:
        attempt = f" (attempt {step['attempt']})" if step["attempt"] > 1 else ""
        head = f"{step['number']:3} {step['role']:<14} {step['status']}{attempt}"
        times = f"waited {_ms(step['wait_seconds'])} ms, ran {_ms(step['run_seconds'])} ms"
        # The stage is the name of the function in the routing table that decided.
        how = f"decided at {step['stage']}" if step["role"] == Role.MANAGER else step["mode"]
        yield Text(f"{head}, {times}" + (f", {how}" if how else ""), "bold")
        if step["degraded"]:
            yield _below(f"not by a model: {step['degraded']}", "yellow")
        if step["error"]:
            yield _below(step["error"], "red")
        yield _below(_wrote(step["wrote"], full=full), "" if step["mode"] else "dim")
        for call in step["model_calls"]:
            yield _below(f"↳ {_call(call)}", "cyan")
        yield from _trajectory(step, full=full)


def _trajectory(step: dict[str, Any], *, full: bool) -> Iterator[RenderableType]:
    """What a model thought, what it had tools do, and what these gave; calls by rules come last."""
    tools = iter(step["tool_calls"])
    for each in step["trajectory"]:
        if each["kind"] == "thought":
            yield _below(f"✎ {_cut(each['text'], full=full)}", "italic")
        elif each["kind"] == "action":
            yield _below(f"⚒ {_tool(next(tools), full=full)}", "magenta")
    for tool in tools:
        yield _below(f"⚒ {_tool(tool, full=full)}", "magenta")


def _below(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 4))


def _call(call: dict[str, Any]) -> str:
    """One call in one line: prompt, model, tokens, cost, and what went wrong on the way."""
    if call["cached"]:
        price = f"cached, from call {call['cached_from']}"
    else:
        tokens = [call["input_tokens"], call["output_tokens"]]
        price = " → ".join("?" if count is None else f"{count:,}" for count in tokens)
        price += " tokens, "
        most = "at most " if call["ended"] is None else ""
        price += "price unknown" if call["cost"] is None else f"{most}{call['cost']:.6f} USD"
    parts = [f"{call['prompt']} {call['prompt_hash']}", call["model"], price]
    parts.append(f"{call['outcome']} after {_ms(call['seconds'])} ms")
    if call["first_token_seconds"] is not None:
        parts.append(f"first token after {_ms(call['first_token_seconds'])} ms")
    parts += [f"before: {attempt.get('outcome')}" for attempt in call["attempts"]]
    return " · ".join(parts + ([call["error"]] if call["error"] else []))


def _tool(tool: dict[str, Any], *, full: bool) -> str:
    """One call of a tool in one line, and its result when everything is to be shown."""
    given = _cut(_text(tool["arguments"]), full=full)
    parts = [f"{tool['tool']} {given}", f"{tool['outcome']} after {_ms(tool['seconds'])} ms"]
    parts += ["done before"] if tool["repeats"] else []
    parts += [tool["error"]] if tool["error"] else []
    seen = _text(tool["result"]) if tool["result"] else ""
    return " · ".join(parts) + (f"\n→ {_cut(seen, full=full)}" if seen else "")


def _analysis(analysis: dict[str, Any]) -> str:
    """Who worked on an analysis, what that was expected to cost, and what could not be done."""
    plan = analysis["plan"]
    steps = " → ".join(" + ".join(step) for step in plan["steps"]) or "nobody"
    lines = [f"Analysis ({plan['query_type']}, complexity {plan['complexity_score']}): {steps}"]
    if estimate := plan["estimate"]:
        cost = "price unknown" if estimate["cost"] is None else f"{estimate['cost']:.6f} USD"
        basis = "a guess" if estimate.get("is_guess") else "as such steps came to lately"
        expected = f"{estimate['calls']} calls, {estimate['tokens']:,} tokens, {cost}"
        lines.append(f"    expected: {expected}, {basis}")
    lines += [f"    not done: {_line(each)}" for each in analysis["shortcomings"] or ()]
    return "\n".join(lines)


def _search(search: dict[str, Any], stats: dict[str, Any], *, full: bool) -> str:
    """One round of search: query, quality, passages with scores, the evaluator's verdict."""
    passages = search["passages"]
    shown = passages if full else passages[:PASSAGES_SHOWN]
    lines = [f"Search {search['round']}: {search['query']!r}, {search['quality']}"]
    if judged := _line({name: stats.get(name) for name in OF_SEARCH}):
        lines.append(f"    {judged}")
    for passage in shown:
        cosine = "-" if passage["cosine"] is None else f"{passage['cosine']:.3f}"
        where = " > ".join(filter(None, (passage["title"], passage["section"])))
        lines.append(f"    {passage['score']:.4f}  cosine {cosine}  {where}  {passage['source']}")
    if len(passages) > len(shown):
        lines.append(f"    … and {len(passages) - len(shown)} more")
    if search["verdict"]:
        lines.append(f"    evaluator: {_line(search['verdict'])}")
    return "\n".join(lines)


def _conversations_with_models(console: Console, steps: list[dict[str, Any]]) -> None:
    """What models were told and what they replied, word for word."""
    for step in steps:
        for call in step["model_calls"]:
            console.rule(f"step {step['number']}, {call['prompt']}")
            for message in call["messages"]:
                console.print(Text(f"{message['role']}:", "bold"))
                console.print(Text(str(message["content"])))
            console.print(Text("reply:", "bold"))
            console.print(Text(call["reply"]))
            for tool in call["tool_calls"]:
                console.print(Text(f"{tool['name']}({tool['arguments']})"))


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}"


def _line(values: dict[str, Any]) -> str:
    """The values that say something, in one line."""
    return ", ".join(f"{name} {_text(value)}" for name, value in _not_empty(values).items())


def _wrote(values: dict[str, Any], *, full: bool) -> str:
    texts = {name: _text(value) for name, value in (values if full else _not_empty(values)).items()}
    return "\n".join(f"{name}: {_cut(text, full=full)}" for name, text in texts.items())


def _cut(text: str, *, full: bool) -> str:
    return text if full or len(text) <= TEXT_LENGTH else text[:TEXT_LENGTH] + "…"


def _not_empty(values: dict[str, Any]) -> dict[str, Any]:
    """The values that say something, also within a value."""
    told = {
        name: _not_empty(value) if isinstance(value, dict) else value
        for name, value in values.items()
    }
    return {name: value for name, value in told.items() if value not in EMPTY}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
