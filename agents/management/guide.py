"""Guide: connects a provider of models step by step, and shows what it is worth before it is set.

Who connects it, how quick the model is, and what five questions come to, is told to an outlet: to
people in a terminal, or as lines of JSON to a program such as the page of the admin.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from getpass import getpass
from typing import Any, TypeVar

from django.conf import settings
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from agents.llm import breaker, connection
from agents.llm.connection import Unconnected
from agents.llm.cost import rates
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Choice
from agents.llm.speed import fullest, judgement, measure
from agents.llm.trial import try_model
from agents.names import PROFILES, Role
from agents.steps import presence
from agents.steps.preload import LOADING_ROLES, preload
from agents.trace import comparison
from agents.trace.comparison import Answered
from knowledge.providers import KNOWN, Provider

Value = TypeVar("Value")
ATTEMPTS = 3
LISTED = 12  # models that are shown of a list
LONGEST_ANSWER = 700  # characters that are shown of one
# Tokens that an ordinary first question has read, by `bench answer`, and that an answer may have.
USUAL_TOKENS = {"full": 4400, "balanced": 3300, "answer": 2400}
USUAL_REPLY = 300
NO_KEY = "no key was given"


@dataclass(frozen=True)
class Wishes:
    """What is known before anybody is asked; empty is asked for, or as it usually is."""

    provider: str = ""
    address: str = ""
    model: str = ""
    profile: str = ""
    key_from: str = ""  # "-": a line of standard input; else the name of a variable
    questions: list[str] = field(default_factory=list)
    compares: bool = True
    saves: bool | None = None  # None: somebody is asked
    as_json: bool = False


class Guide:
    """One way through the steps."""

    def __init__(self, wishes: Wishes) -> None:
        self.wishes = wishes
        self.console = Console(stderr=wishes.as_json, highlight=False)
        self.asks = sys.stdin.isatty() and not wishes.as_json

    def run(self) -> bool:
        """Connect, try, compare and set it; False when it cannot be used. Raises Unconnected."""
        self.head("1. Who serves the model?")
        provider, listed = self.patiently(self.connect)
        self.told("connected", provider=provider.name, address=provider.base_url, models=listed)
        count = f"lists {len(listed)} models" if listed else "answers"
        self.console.print(f"{connection.title(provider)} at {provider.base_url} {count}.")
        self.head("2. Which model?")
        model = self.choose_model(provider, listed)
        full_name = f"{model}@{provider.name}"
        before = dict(settings.MODELS)
        with connection.using(provider, connection.choices_with(full_name, "full")):
            self.head(f"3. Does {full_name} answer, and how quickly?")
            profile = self.try_out(full_name)
            if not profile:
                return False
            after = connection.choices_with(full_name, profile)
            settings.MODELS = after
            if self.wishes.compares:
                self.head("4. The same questions before and after")
                self.compare(before, after, full_name, profile)
        self.head("5. Set it")
        self.save(connection.variables(provider, full_name, profile), full_name)
        return True

    # The steps.

    def connect(self) -> tuple[Provider, list[str]]:
        """Return the provider and the models that it lists. Raises Unconnected."""
        name, address = self.wishes.provider, self.wishes.address
        if not name and not address:
            name = self.choose_kind()
        if name not in KNOWN and not address:
            address = self.ask("Address of its API, like https://host/v1")
        elif name in KNOWN and not connection.needs_key(name) and not address:
            address = self.ask("Address of its API", KNOWN[name])
        name = name or self.ask("A short name for it", connection.name_of(address))
        provider = connection.connected(name, address, self.key(name))
        with self.console.status(f"Asking {connection.title(provider)} for its models"):
            return provider, connection.listed_models(provider)

    def choose_kind(self) -> str:
        """Return the name of a provider; empty for one that is not known."""
        if not self.asks:
            raise Unconnected("Nobody can be asked here: name the provider, like --add openai.")
        kinds = connection.kinds()
        for number, (name, called) in enumerate(kinds.items(), start=1):
            self.console.print(f"  {number:2}  {called:26} [dim]{KNOWN[name]}[/]")
        other = len(kinds) + 1
        self.console.print(f"  {other:2}  another server that speaks OpenAI's chat API")
        said = self.ask("Number", "1")
        if said in kinds:
            return said
        if not said.isdigit() or not 0 < int(said) <= other:
            raise Unconnected(f"{said!r} is none of the numbers 1 to {other}.")
        return [*kinds, ""][int(said) - 1]

    def key(self, name: str) -> str:
        """Return the key, which is not shown while it is typed; empty: as it is set now."""
        variable = f"{name.upper()}_API_KEY"
        if self.wishes.key_from == "-":
            return sys.stdin.readline().strip()
        if self.wishes.key_from:
            key = os.environ.get(self.wishes.key_from, "")
            if not key:
                raise Unconnected(f"--key-from {self.wishes.key_from}: it is not set, or empty.")
            return key
        if not self.asks:
            return ""
        known = "Enter keeps the one that is set" if os.environ.get(variable) else "Enter: none"
        needed = connection.needs_key(name) and not os.environ.get(variable)
        return getpass(f"Key (not shown{'' if needed else f'; {known}'}): ").strip()

    def choose_model(self, provider: Provider, listed: list[str]) -> str:
        """Return the name of a model, as the provider has it."""
        usual = connection.USUAL_MODELS.get(provider.name, "")
        proposed = usual if usual in listed or not listed else listed[0]
        if not self.wishes.model and self.asks and listed:
            more = f" … and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
            self.console.print(f"It has {', '.join(listed[:LISTED])}{more}.", markup=False)
        model = self.wishes.model or self.ask("Name of the model", proposed)
        model = model.removesuffix(f"@{provider.name}")
        if listed and model not in listed:
            near = get_close_matches(model, listed, 3, 0.5)
            hint = f" Near to it: {', '.join(near)}." if near else ""
            note = f"{model} is not among the {len(listed)} models it lists.{hint}"
            self.told("note", text=note)
            self.console.print(f"[yellow]{escape(note)}[/]")
        return model

    def try_out(self, model: str) -> str:
        """Return the profile the model is quick enough for; empty when it cannot be used."""
        choice = self.widest(model)
        breaker.forget(model.rpartition("@")[2])
        with self.console.status("Asking it for a word, and for one of a long message"):
            trial = try_model(choice)
        self.told("tried", outcome=trial.outcome, seconds=trial.seconds, said=trial.text)
        colour = "green" if trial.usable else "red"
        self.console.print(
            f"[{colour}]{trial.outcome}[/] after {trial.seconds:.1f} s: {escape(trial.text)}"
        )
        if trial.outcome is not Outcome.OK:
            return ""
        try:
            with self.console.status("Having it read as much as for an answer"):
                speed = measure(choice)
            told, fitting = judgement(model, speed), fullest(speed) or "answer"
        except ModelFailure as failure:
            told, fitting = f"How quick it is could not be measured: {failure}", "answer"
        profile = self.wishes.profile or self.ask(
            f"MODEL_PROFILE ({', '.join(PROFILES)})", fitting, before=told
        )
        if profile not in PROFILES:
            raise Unconnected(f"{profile!r} is no profile; there are {', '.join(PROFILES)}.")
        self.told("measured", text=told, profile=profile)
        return profile

    def compare(
        self, before: Mapping[str, Choice], after: Mapping[str, Choice], model: str, profile: str
    ) -> None:
        """Ask the same questions with the models of now and with those of then."""
        collection = comparison.collection_to_ask()
        if collection is None:
            self.told("note", text="There are no documents to ask about yet.")
            self.console.print("There are no documents to ask about yet.")
            return
        asked = self.wishes.questions or comparison.questions(collection)
        price = told_price(model, profile, len(asked))
        self.console.print(f"{len(asked)} questions about {collection.name}. {price}")
        if self.asks and not self.agrees("Ask them?"):
            return
        with self.console.status("Loading what a question needs"):
            preload(LOADING_ROLES)
        pairs = []
        for number, question in enumerate(asked, start=1):
            self.told("asking", number=number, of=len(asked))
            with self.console.status(f"Question {number} of {len(asked)}: {escape(question)}"):
                pair = tuple(
                    comparison.answered(question, collection.name, models)
                    for models in (before, after)
                )
            pairs.append(pair)
            self.show_pair(question, *pair)
            self.told("answered", question=question, answers=[each.record() for each in pair])
        sums = [comparison.summary([pair[side] for pair in pairs]) for side in (0, 1)]
        told = told_cost(sums[1], model)
        self.told("compared", collection=collection.name, sums=sums, text=told)
        self.show_sums(sums)
        self.console.print(told)

    def save(self, values: Mapping[str, str], model: str) -> None:
        """Write the settings to `.env`, or say which to set."""
        file = connection.env_file()
        if self.wishes.saves is False or (
            self.wishes.saves is None and not (self.asks and self.agrees(f"Write it to {file}?"))
        ):
            self.hand_over("Nothing was set. These settings do it:", values)
            return
        try:
            connection.write(values)
        except OSError as error:
            self.hand_over(f"{file} cannot be written ({error.strerror}). Set these:", values)
            return
        told = [f"{model} is set in {file}."]
        if names := connection.overruled(values):
            told.append(f"The environment sets {', '.join(names)}, and wins: change it there.")
        told.append(next_step())
        self.told("saved", text=" ".join(told))
        self.console.print("\n".join(told), markup=False)

    # What is asked and told.

    def patiently(self, step: Callable[[], Value]) -> Value:
        """Take a step; who is asked may mend what was wrong with it."""
        for left in reversed(range(ATTEMPTS)):
            try:
                return step()
            except Unconnected as error:
                if not (self.asks and left):
                    raise
                self.console.print(f"[red]{escape(str(error))}[/] Once more:")
        raise AssertionError

    def ask(self, what: str, proposed: str = "", before: str = "") -> str:
        """Return what is typed, or what is proposed. Raises Unconnected where nobody can type."""
        if before:
            self.console.print(before, markup=False)
        if not self.asks:
            if proposed:
                return proposed
            raise Unconnected(f"{what}: nobody can be asked here; give it as an option.")
        return (
            self.console.input(
                f"{what}{f' [{proposed}]' if proposed else ''}: ", markup=False
            ).strip()
            or proposed
        )

    def agrees(self, what: str) -> bool:
        """Return whether who is asked says yes; Enter does."""
        return self.ask(f"{what} (y/n)", "y").lower() in {"y", "yes"}

    def head(self, text: str) -> None:
        self.console.print(f"\n[bold]{escape(text)}[/]")

    def told(self, stage: str, **facts: Any) -> None:
        """Tell a program what is known by now, as a line of JSON."""
        if self.wishes.as_json:
            print(json.dumps({"stage": stage} | facts, ensure_ascii=False), flush=True)  # noqa: T201

    def hand_over(self, text: str, values: Mapping[str, str]) -> None:
        lines = connection.shown(values)
        self.told("left", text=text, lines=lines)
        self.console.print("\n".join([text, *(f"  {line}" for line in lines)]), markup=False)

    def widest(self, model: str) -> Choice:
        """Return the choice of who writes answers, asking this model alone."""
        choice: Choice = settings.MODELS[Role.RESPONSE.value]
        return Choice(model, "", choice.max_tokens, 0.0, choice.timeout)

    def show_pair(self, question: str, before: Answered, after: Answered) -> None:
        table = Table("before", "after", title=escape(question), title_justify="left", expand=True)
        table.add_row(*(Markdown(shortened(each.text)) for each in (before, after)))
        table.add_section()
        table.add_row(figures(before), figures(after))
        self.console.print(table)
        for failure in after.failures:
            self.console.print(f"[yellow]{escape(failure)}[/]")

    def show_sums(self, sums: list[dict[str, Any]]) -> None:
        table = Table("of a question, on average", "before", "after")
        for name, key in (
            ("seconds", "seconds"),
            ("calls of models", "calls"),
            ("tokens read", "input_tokens"),
            ("tokens written", "output_tokens"),
        ):
            table.add_row(name, *(f"{each[key]:,}" for each in sums))
        table.add_row("USD for 1,000 questions", *(money(each["usd_per_1000"]) for each in sums))
        table.add_row("citations in all", *(citations(each["citations"]) for each in sums))
        self.console.print(table)


def shortened(text: str) -> str:
    """Return the beginning of an answer."""
    return text if len(text) <= LONGEST_ANSWER else f"{text[:LONGEST_ANSWER].rstrip()} …"


def figures(answer: Answered) -> str:
    """Return what an answer took and how far it is supported, in a line."""
    tokens = f"{answer.input_tokens:,} + {answer.output_tokens:,} tokens, {money(answer.cost)} USD"
    calls = f"{answer.calls} call{'s' * (answer.calls != 1)}"
    spent = f", {calls}, {tokens}" if answer.calls else ""
    return f"{answer.mode}, {answer.seconds:.1f} s{spent}; citations: {citations(answer.citations)}"


def citations(counts: Mapping[str, int]) -> str:
    """Return how many citations have each status."""
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "none"


def money(amount: float | None) -> str:
    """Return an amount in US dollars."""
    return "not known" if amount is None else f"{amount:.4g}"


def told_price(model: str, profile: str, count: int) -> str:
    """Return in a sentence what asking them with the model may cost, before it is asked."""
    known = rates(model)
    tokens = count * USUAL_TOKENS[profile]
    if known is None:
        return f"{model} reads about {tokens:,} tokens for them, at a price that is not known."
    usd = (tokens * float(known[0]) + count * USUAL_REPLY * float(known[1])) / 1e6
    return f"{model} reads about {tokens:,} tokens for them, about {usd:.4f} USD."


def told_cost(after: Mapping[str, Any], model: str) -> str:
    """Return in a sentence what 1,000 questions like these cost, by the tokens of these."""
    measured = (
        f"{after['input_tokens']:,} tokens read and {after['output_tokens']:,} written for each"
    )
    if connection.is_free(model):
        return f"1,000 questions like these: {measured}; your own server takes nothing by the call."
    if after["usd_per_1000"] is None:
        return (
            f"1,000 questions like these: {measured}; the price of {model} is not known: add it "
            "under Prices in the admin."
        )
    return f"1,000 questions like these: about {after['usd_per_1000']:.2f} USD ({measured})."


def next_step() -> str:
    """Return what has to be done so that a Docent that runs asks the model."""
    if not presence.consumers():
        return "The next start of Docent asks it: python3 manage.py up"
    return (
        "Docent runs, and reads its settings when it starts: stop it with Ctrl-C and start it "
        "again with python3 manage.py up, or restart its services."
    )
