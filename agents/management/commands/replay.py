"""replay: runs a stored turn once more, beside what came of it then."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agents.errors import AgentError
from agents.management.commands.trace import find_turn
from agents.trace.replay import Replay, changes, comparison
from knowledge.errors import KnowledgeError

SAME, DIFFERENT = 0, 2
TEXT_LENGTH = 600


class Command(BaseCommand):
    """Replays a turn from its journal and shows what would be different."""

    help = (
        "Run a stored turn again, whole or from a step, with other models or prompts, beside the "
        "old one. What nobody asked then is asked now; everything else comes from the journal. "
        "Exit code: 0 the same, 2 different."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add TURN, --from, --model, --prompt, --full and --json."""
        parser.add_argument("turn", help="id of the turn, or an error id a user was shown")
        parser.add_argument(
            "--from", type=int, default=1, dest="since", metavar="STEP",
            help="number of the step to begin with; those before it are taken as they were",
        )  # fmt: skip
        parser.add_argument(
            "--model", action="append", default=[], metavar="ROLE=MODEL",
            help="let this role ask model@provider (repeatable)",
        )  # fmt: skip
        parser.add_argument(
            "--prompt", action="append", default=[], metavar="PROMPT=FILE",
            help="put this file in the place of the prompt, which has the role's name (repeatable)",
        )  # fmt: skip
        parser.add_argument("--full", action="store_true", help="shorten nothing")
        parser.add_argument("--json", action="store_true", help="everything, as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Replay and compare."""
        try:
            differences = changes(options["model"], options["prompt"])
            replay = Replay(find_turn(options["turn"]), differences, options["since"])
            replay.run()
        except (AgentError, KnowledgeError) as error:
            raise CommandError(str(error)) from error
        sides = comparison(replay)
        if options["json"]:
            self.stdout.write(json.dumps(sides, indent=2, ensure_ascii=False))
        else:
            _show(Console(), sides, full=options["full"])
        sys.exit(SAME if sides["same"] else DIFFERENT)


def _show(console: Console, sides: dict[str, Any], *, full: bool) -> None:
    table = Table("", "role", "then", "now", show_lines=True)
    for step in sides["steps"]:
        then, now = (_values(step[side], full=full) for side in ("then", "now"))
        calls = "".join(f"\n{_call_line(call)}" for call in step["calls"])
        reason = f"\nnot by a model: {step['degraded']}" if step["degraded"] else ""
        if not (then or now):
            now = "as then" if step["how"] == "stored" else "the same"
        style = "" if step["then"] or step["now"] else "dim"
        table.add_row(
            str(step["number"]), step["role"], Text(then), Text(now + calls + reason), style=style
        )
    console.print(table)
    if sides["route"]["then"] != sides["route"]["now"]:
        for side, roles in sides["route"].items():
            console.print(f"Route {side}: {' → '.join(roles)}")
    _show_answers(console, sides)
    for note in sides["notes"]:
        console.print(Text(note, "yellow"))
    usage = sides["usage"]
    cost = "price not known" if usage["cost"] is None else f"{usage['cost']:.6f} USD"
    console.print(
        f"Model calls asked now: {usage['asked']} ({usage['input_tokens']} → "
        f"{usage['output_tokens']} tokens, {cost}); answered before: {usage['found']}."
    )
    console.print("[green]The same.[/]" if sides["same"] else "[yellow]Different.[/]")


def _show_answers(console: Console, sides: dict[str, Any]) -> None:
    answer, status = sides["answer"], sides["status"]
    if answer["then"] == answer["now"] and status["then"] == status["now"]:
        return
    table = Table(f"answer then ({status['then']})", f"answer now ({status['now'] or 'no end'})")
    table.add_row(Text(answer["then"]), Text(answer["now"]))
    console.print(table)


def _values(values: dict[str, Any], *, full: bool) -> str:
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
    }
    return "\n".join(
        f"{name}: {text if full or len(text) <= TEXT_LENGTH else text[:TEXT_LENGTH] + '…'}"
        for name, text in texts.items()
    )


def _call_line(call: dict[str, Any]) -> str:
    """One call in one line; what was asked just now with what it took."""
    line = f"{call['how']}: {call['prompt']} {call['prompt_hash']} {call['model']}"
    if call["how"] == "asked":
        tokens = [call["input_tokens"], call["output_tokens"]]
        line += (
            " " + " → ".join("?" if count is None else str(count) for count in tokens) + " tokens"
        )
    return line if call["outcome"] == "ok" else f"{line} ({call['outcome']})"
