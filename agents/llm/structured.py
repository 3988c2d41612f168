"""Structured: replies in a shape. The schema a model is given, and what its reply must be."""

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agents.llm.outcomes import ModelFailure, Outcome

FENCE = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
SHOWN = 200

Shape = TypeVar("Shape", bound=BaseModel)


def schema_of(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a shape as strict endpoints want it.

    Every property is required and none may be added: strict mode knows no defaults.
    """
    schema: dict[str, Any] = _strict(shape.model_json_schema())
    return schema


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {
        name: _strict(value) for name, value in node.items() if name not in {"default", "title"}
    }
    if node.get("type") == "object" and "properties" in node:
        kept["properties"] = {name: _strict(each) for name, each in node["properties"].items()}
        kept |= {"additionalProperties": False, "required": list(node["properties"])}
    return kept


def parsed(text: str, shape: type[Shape]) -> Shape:
    """Return the reply in its shape. Raises ModelFailure: EMPTY, MALFORMED or WRONG_SCHEMA."""
    if not text.strip():
        raise ModelFailure(Outcome.EMPTY, "the reply is empty")
    try:
        return shape.model_validate(_json(text))
    except json.JSONDecodeError as error:
        raise ModelFailure(
            Outcome.MALFORMED, f"the reply is not JSON ({error}): {text.strip()[:SHOWN]!r}"
        ) from error
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'the reply'}: {each['msg']}"
            for each in error.errors()[:5]
        )
        raise ModelFailure(
            Outcome.WRONG_SCHEMA, f"the reply does not have the shape asked for: {problems}"
        ) from error


def _json(text: str) -> Any:
    """Read the JSON, also out of a code fence or between two sentences around it."""
    if fenced := FENCE.match(text):
        text = fenced[1]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        begin, end = text.find("{"), text.rfind("}")
        if begin < 0 or end < begin:
            raise
        return json.loads(text[begin : end + 1])
