"""Passages for the tests of the agents: a small handbook about a coffee machine."""

from typing import Any

CLEANING = (
    "The machine needs descaling every three months.\n\n"
    "To descale the machine:\n\n"
    "1. Fill the tank with descaler and water.\n"
    "2. Press the **Clean** button for five seconds.\n"
    "3. Rinse the tank twice. See the [care guide](care.md).\n\n"
    "Descaling takes about twenty minutes."
)
WARRANTY = (
    "The warranty covers defects for two years. It does not cover damage by limescale. "
    "Keep the receipt, because the service asks for it."
)
GRINDER = "The grinder has five settings. A finer setting makes the coffee stronger."


def passage(number: int, title: str, section: str, text: str, cosine: float) -> dict[str, Any]:
    """One passage as search writes it."""
    return {
        "chunk_id": number,
        "document_id": f"doc{number}",
        "version": 1,
        "title": title,
        "section": section,
        "crumbs": [],
        "source": f"handbook/{title.lower().replace(' ', '-')}.md",
        "language": "en",
        "text": text,
        "score": 0.1 / number,
        "cosine": cosine,
    }


PASSAGES = [
    passage(1, "Care", "Descaling", CLEANING, 0.7),
    passage(2, "Warranty", "", WARRANTY, 0.4),
    passage(3, "The grinder", "Settings", GRINDER, 0.3),
]
