"""PostgreSQL text: what of a text its columns can hold, for whatever comes from outside.

Neither null characters nor halves of characters (lone surrogates) can be stored.
"""

from typing import Any


def storable(text: str) -> str:
    """Return the text without null characters and with "?" for halves of characters."""
    return text.replace("\0", "").encode(errors="replace").decode()


def is_storable(text: str) -> bool:
    """Tell whether the text can be stored as it is."""
    return storable(text) == text


def storable_json(value: Any) -> Any:
    """Return a value of JSON with each text in it, names included, made storable."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(name): storable_json(each) for name, each in value.items()}
        case list() | tuple():
            return [storable_json(each) for each in value]
    return value
