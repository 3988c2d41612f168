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
from agents.trace.trace import trace

SHORT = 90
PASSAGES_SHOWN = 3
NOTHING: tuple[Any, ...] = (None, "", [], {})


class Command(BaseCommand):
    """Prints a turn step by step."""

    help = "Print what happened in a turn: every step, what it wrote, its model calls, its times."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add TURN, --json and --full."""
        parser.add_argument("turn", help="id of the turn, or an error id a user was shown")
        parser.add_argument("--json", action="store_true", help="everything, as JSON")
        parser.add_argument(
            "--full", action="store_true", help="shorten nothing; with what models were told"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the trace."""
        told = trace(find(options["turn"]), staff=True)
        if options["json"]:
            self.stdout.write(json.dumps(told, indent=2, ensure_ascii=False))
            return
        console, full = Console(), options["full"]
        console.print(
            f"Turn {told['turn_id']}: {told['status']} in {told['seconds']} s, {told['mode']}"
        )
        console.print(Text(f"Plan: {_line(told['plan'])}"))
        for line in _steps(told["steps"], full=full):
            console.print(line)
        for searched in told["iterations"]:
            console.print(Text(_searched(searched, full=full)))
        roles = told["usage"].pop("roles")
        for name, usage in {"Usage": told["usage"], **roles}.items():
            console.print(Text(f"{name}: {_line(usage)}"))
        if full:
            _conversations_with_models(console, told["steps"])
        for fault in told["faults"]:
            console.print(f"[red]{fault['code']}[/] {fault['summary']}")


def find(name: str) -> Envelope:
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
        yield Text(f"{head}, {times}" + (f", {step['mode']}" if step["mode"] else ""), "bold")
        if step["degraded"]:
            yield _below(f"not by a model: {step['degraded']}", "yellow")
        if step["error"]:
            yield _below(step["error"], "red")
        yield _below(_wrote(step["wrote"], full=full), "" if step["mode"] else "dim")
        for call in step["model_calls"]:
            yield _below(f"↳ {_called(call)}", "cyan")


def _below(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 4))


def _called(call: dict[str, Any]) -> str:
    """One call in one line: prompt, model, tokens, cost, and what went wrong on the way."""
    if call["cached"]:
        paid = f"cached, from call {call['cached_from']}"
    else:
        tokens = [call["input_tokens"], call["output_tokens"]]
        paid = " → ".join("?" if each is None else f"{each:,}" for each in tokens) + " tokens, "
        paid += "price unknown" if call["cost"] is None else f"{call['cost']:.6f} USD"
    parts = [f"{call['prompt']} {call['prompt_hash']}", call["model"], paid]
    parts.append(f"{call['outcome']} after {_ms(call['seconds'])} ms")
    if call["first_token_seconds"] is not None:
        parts.append(f"first token after {_ms(call['first_token_seconds'])} ms")
    parts += [f"before: {each.get('outcome')}" for each in call["attempts"]]
    return " · ".join(parts + ([call["error"]] if call["error"] else []))


def _searched(searched: dict[str, Any], *, full: bool) -> str:
    """One round of search: query, quality, passages with scores, the evaluator's verdict."""
    passages = searched["passages"]
    shown = passages if full else passages[:PASSAGES_SHOWN]
    lines = [f"Search {searched['round']}: {searched['query']!r}, {searched['quality']}"]
    for passage in shown:
        cosine = "-" if passage["cosine"] is None else f"{passage['cosine']:.3f}"
        where = " > ".join(filter(None, (passage["title"], passage["section"])))
        lines.append(f"    {passage['score']:.4f}  cosine {cosine}  {where}  {passage['source']}")
    if len(passages) > len(shown):
        lines.append(f"    … and {len(passages) - len(shown)} more")
    if searched["verdict"]:
        lines.append(f"    evaluator: {_line(searched['verdict'])}")
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
            for wanted in call["tool_calls"]:
                console.print(Text(f"{wanted['name']}({wanted['arguments']})"))


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}"


def _line(values: dict[str, Any]) -> str:
    """The values that say something, in one line."""
    told = {name: value for name, value in values.items() if value not in NOTHING}
    return ", ".join(f"{name} {_text(value)}" for name, value in told.items())


def _wrote(values: dict[str, Any], *, full: bool) -> str:
    told = values if full else {name: each for name, each in values.items() if each not in NOTHING}
    shown = {name: _text(value) for name, value in told.items()}
    return "\n".join(
        f"{name}: {text if full or len(text) <= SHORT else text[:SHORT] + '…'}"
        for name, text in shown.items()
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
