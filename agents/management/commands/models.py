"""models: shows which models are asked, what they cost, and whether they answer."""

import sys
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agents.llm import breaker
from agents.llm.breaker import State
from agents.llm.connection import Unconnected
from agents.llm.cost import rates
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.speed import advice
from agents.llm.trial import Trial, try_model, widest_choices
from agents.management.guide import Guide, Wishes
from agents.names import ANALYSTS, MODEL_ASKERS, PROFILES
from knowledge.providers import Provider, UnknownProvider, parse_model_name

NO_MODEL = "No model is set: every role works by its own rules. Set GEN_MODEL to have one."


class Command(BaseCommand):
    """Prints the models of every role; with --ask it tries each of them."""

    help = (
        "Show the model and the second model of every role, their prices, and which providers are "
        "left alone because they fail. With --ask, ask every model for two words, of which one "
        "begins a long message, and say whether it is quick enough for a turn. With --add, connect "
        "a provider."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --ask, and --add with what it may be told."""
        parser.add_argument(
            "--ask",
            action="store_true",
            help="ask and time every model; exit code 1 when one does not answer",
        )
        parser.add_argument(
            "--add",
            nargs="?",
            const="",
            metavar="PROVIDER",
            help="connect a provider step by step: try it, compare answers, write it to .env",
        )
        add = parser.add_argument_group("with --add, instead of being asked")
        add.add_argument("--address", default="", metavar="URL", help="of its API")
        add.add_argument("--model", default="", help="its name there")
        add.add_argument("--profile", default="", choices=["", *PROFILES], help="MODEL_PROFILE")
        add.add_argument(
            "--key-from",
            default="",
            metavar="-|VARIABLE",
            help="read the key from a line of standard input, or from this variable",
        )
        add.add_argument(
            "--question",
            action="append",
            default=[],
            help="compare answers to this (repeatable; else golden questions)",
        )
        add.add_argument("--no-compare", action="store_true", help="compare no answers")
        saves = add.add_mutually_exclusive_group()
        saves.add_argument("--save", action="store_true", help="write it to .env when it answers")
        saves.add_argument("--no-save", action="store_true", help="say what to set, write nothing")
        add.add_argument("--json", action="store_true", help="a line of JSON for every step")

    def handle(self, *args: Any, **options: Any) -> None:
        """Show, try, or connect."""
        if options["add"] is not None:
            add(options)
            return
        choices = widest_choices(settings.MODELS)
        if not choices:
            self.stdout.write(NO_MODEL)
            return
        console = Console()
        console.print(f"Profile: {settings.MODEL_PROFILE}, {_askers()}", highlight=False)
        console.print(_roles())
        console.print(_models(choices, breaker.states()))
        if options["ask"]:
            trials = [try_model(choice) for choice in choices.values()]
            console.print(_trials(trials))
            for choice, trial in zip(choices.values(), trials, strict=True):
                if trial.outcome is Outcome.OK:
                    console.print(advice(choice), highlight=False)
            if not all(each.usable for each in trials):
                sys.exit(1)


def add(options: dict[str, Any]) -> None:
    """Go through the steps; exit code 1 when the model cannot be used."""
    saves = True if options["save"] else False if options["no_save"] else None
    wishes = Wishes(
        provider=options["add"].strip().lower(),
        address=options["address"],
        model=options["model"],
        profile=options["profile"],
        key_from=options["key_from"],
        questions=options["question"],
        compares=not options["no_compare"],
        saves=saves,
        as_json=options["json"],
    )
    guide = Guide(wishes)
    try:
        usable = guide.run()
    except (Unconnected, ModelFailure, UnknownProvider) as error:
        guide.told("failed", text=str(error))
        raise CommandError(str(error)) from error
    except (EOFError, KeyboardInterrupt) as error:
        raise CommandError("Stopped. Nothing was set.", returncode=130) from error
    if not usable:
        sys.exit(1)


def _askers() -> str:
    asked = PROFILES[settings.MODEL_PROFILE]
    others = ", ".join(sorted(asked - {*ANALYSTS}))
    every = asked == {*MODEL_ASKERS}
    names = "every role asks" if every else f"{others} and the roles of analysis ask"
    return f"{names} GEN_MODEL unless a setting of its own says otherwise."


def _roles() -> Table:
    table = Table("role", "model", "second model", "tokens", "seconds", title="Who asks")
    for asker, choice in settings.MODELS.items():
        table.add_row(
            asker,
            choice.model or "none",
            choice.second,
            f"{choice.max_tokens:,}",
            f"{choice.timeout:g}",
        )
    return table


def _models(names: Iterable[str], states: dict[str, State]) -> Table:
    table = Table("model", "address", "USD per million tokens", "provider", title="Who is asked")
    for name in names:
        provider = settings.PROVIDERS[parse_model_name(name)[1]]
        state = _missing(provider) or _state(states[provider.name])
        table.add_row(name, provider.base_url, _price(name), state)
    return table


def _price(name: str) -> str:
    known = rates(name)
    return f"{float(known[0]):.4g} in, {float(known[1]):.4g} out" if known else "unknown"


def _missing(provider: Provider) -> Text | None:
    """Say which setting lacks of a provider that answers nobody without it."""
    return Text(f"{provider.key_variable} is not set", "red") if provider.lacks_key else None


def _state(state: State) -> Text:
    if state.until is None:
        return Text("asked", "green")
    if state.name == "open":
        return Text(f"left alone until {state.until:%H:%M:%S} UTC: {state.last}", "red")
    return Text(f"being tried again: {state.last}", "yellow")


def _trials(trials: list[Trial]) -> Table:
    table = Table("model", "outcome", "seconds", "said", title="What they say")
    for trial in trials:
        table.add_row(
            trial.model,
            Text(trial.outcome, "green" if trial.usable else "red"),
            f"{trial.seconds:.2f}",
            trial.text,
        )
    return table
