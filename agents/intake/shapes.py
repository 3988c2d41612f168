"""Shapes: what the replies of the intake's models have in common."""

from typing import Annotated

from pydantic import Field, StringConstraints

Written = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]


def first(texts: list[str], most: int, longest: int) -> list[str]:
    """Return the texts that say something, no more and no longer than this, each once."""
    said = (" ".join(text.split())[:longest] for text in texts)
    return list(dict.fromkeys(text for text in said if text))[:most]
