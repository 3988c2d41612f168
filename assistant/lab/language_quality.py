"""Language quality: how often the language of a first message is told right."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.console import RenderableType
from rich.table import Table

from agents.intake.lang import recognise
from agents.words import base_language
from assistant.lab.judged_data import Line, all_lines
from assistant.lab.measures import digits

MOST_MISTAKES = 3  # shown for each language


class Text(Line):
    """A text, and the code of the language it is in."""

    text: str = Field(min_length=1)
    language: str = Field(min_length=2)


def texts_of(path: Path) -> list[Text]:
    """Return the texts of the file. Raises Unjudgeable, which names the line."""
    return all_lines(path, Text, "text")


def evaluate(texts: Sequence[Text]) -> dict[str, Any]:
    """Return what the lang agent says of each text as a first message, with no history.

    `accuracy` is the mean over the languages, however many texts each has; `taken_for` has the
    texts of a language that were told wrong, by the language that was said.
    """
    said = [(base_language(text.language), _said(text.text)) for text in texts]
    count = Counter(language for language, _ in said)
    pairs = Counter(said)
    by_language = {
        language: pairs[language, language] / count[language] for language in sorted(count)
    }
    taken_for: dict[str, dict[str, int]] = {language: {} for language in by_language}
    for (language, other), times in pairs.most_common():
        if other != language:
            taken_for[language][other] = times
    return {
        "accuracy": sum(by_language.values()) / len(by_language),
        "by_language": by_language,
        "texts": dict(sorted(count.items())),
        "taken_for": taken_for,
    }


def _said(text: str) -> str:
    return base_language(str(recognise({"text": text})["language"]))


def table(figures: dict[str, Any]) -> RenderableType:
    """Return a line for each language."""
    rows = Table(
        "", "texts", "right", "taken for",
        title=f"{sum(figures['texts'].values()):,} texts in {len(figures['by_language'])} "
        f"languages; mean accuracy {digits(figures['accuracy'])}",
        title_justify="left",
    )  # fmt: skip
    for language, share in figures["by_language"].items():
        mistakes = list(figures["taken_for"][language].items())[:MOST_MISTAKES]
        rows.add_row(
            language,
            str(figures["texts"][language]),
            digits(share),
            ", ".join(f"{other} {times}" for other, times in mistakes),
        )
    return rows
