"""Fields: what a value of an archive may be."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from knowledge.graph.keys import LONGEST, key
from knowledge.ingestion.drafts import CONFIGS
from knowledge.postgres_text import is_storable, storable_json

KNOWN_CONFIGS = {"simple", *CONFIGS.values()}


def as_stored(text: str) -> str:
    """Refuse what PostgreSQL cannot store."""
    if not is_storable(text):
        raise ValueError("a text holds a null character or half a character")
    return text


def json_as_stored(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what PostgreSQL cannot store."""
    if storable_json(value) != value:
        raise ValueError("a text holds a null character or half a character")
    return value


def known_config(name: str) -> str:
    """Refuse a text search configuration that no language here has."""
    if name not in KNOWN_CONFIGS:
        raise ValueError(f"{name!r} is no text search configuration known here")
    return name


def telling(name: str) -> str:
    """Refuse a name without a letter or digit: nothing could be found by it."""
    if not key(name):
        raise ValueError(f"{name!r} is no name of anything")
    return name


Text = Annotated[str, AfterValidator(as_stored)]
Address = Annotated[Text, Field(min_length=1, max_length=1000)]
Title = Annotated[Text, Field(max_length=500)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
ModelName = Annotated[Text, Field(min_length=1, max_length=100)]
Name = Annotated[Text, Field(max_length=LONGEST), AfterValidator(telling)]
