"""Replies: what a scripted model says, well enough for each role to go on.

It reads what it is asked from the marked data and fills the shape it is asked for, so that it
keeps working when a prompt is worded anew.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.bench.modelserver import Asked, Said

ELEMENT = re.compile(r"<(\w+)-([0-9a-f]{8})([^>]*)>\n(.*?)\n</\1-\2>", re.DOTALL)
PASSAGE = re.compile(r'<passage[^>]*marker="(C\d+)"[^>]*>\n(.*?)\n</passage', re.DOTALL)
SENTENCE = re.compile(r"(?<=[.!?])\s+")


def data(asked: Asked, name: str) -> str:
    """Return what the data of this name says, of the last message; empty when it has none."""
    found = [text for kind, _, _, text in ELEMENT.findall(asked.user) if kind == name]
    return "\n".join(found)


def passages(asked: Asked) -> dict[str, str]:
    """Return the passages the response may cite, by marker."""
    return dict(PASSAGE.findall(asked.user))


def cited(asked: Asked) -> str:
    """Return the last sentence of the first passage with its marker: an answer that holds."""
    text = passages(asked).get("C1", "")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    said = SENTENCE.split(lines[-1])[0] if lines else "Nothing is said."
    return f"{said.rstrip()} [C1]"


def _question(asked: Asked) -> str:
    for name in QUESTIONS:
        if found := data(asked, name):
            return found
    return ""


# Where prompts put what is to be worked on.
QUESTIONS = (
    "text_eng",
    "message",
    "question",
    "canonical_question",
    "text",
)
# By property of the shape that is asked for.
VALUES: dict[str, Callable[[Asked], Any]] = {
    "text_eng": _question,
    "translation": _question,
    "english": _question,
    "canonical_question": _question,
    "context_type": lambda _: "new_topic",
    "clarification_result": lambda _: None,
    "passed": lambda _: True,
    "guardrails_passed": lambda _: True,
    "within_scope": lambda _: True,
    "route": lambda _: "documentation",
    "route_confidence": lambda _: 0.9,
    "query_type": lambda _: "simple_search",
    "sufficient": lambda _: True,
    "usable": lambda _: True,
    "decision": lambda _: "approve",
    "quality_decision": lambda _: "approve",
    "score": lambda _: 0.9,
    "quality_score": lambda _: 0.9,
    "confidence": lambda _: 0.9,
    "vagueness_score": lambda _: 0.1,
    "vague": lambda _: False,
    "summary": lambda _: "They talked about the Teapot.",
    "description": lambda _: "What the Teapot does.",
}


def _value(asked: Asked, name: str, shape: dict[str, Any], root: dict[str, Any]) -> Any:
    if name in VALUES:
        return VALUES[name](asked)
    shape = _resolved(shape, root)
    if options := shape.get("anyOf"):
        nothing = any(each.get("type") == "null" for each in options)
        return None if nothing else _value(asked, "", options[0], root)
    if "enum" in shape:
        return shape["enum"][0]
    match shape.get("type"):
        case "object":
            return _object(asked, shape, root)
        case "array":
            return []
        case "integer" | "number":
            return shape.get("minimum", 0)
        case "boolean":
            return False
    return ""


def _resolved(shape: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    named = shape.get("$ref", "").rpartition("/")[2]
    return root["$defs"][named] if named else shape


def _object(asked: Asked, shape: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    return {n: _value(asked, n, each, root) for n, each in shape.get("properties", {}).items()}


def sensible(asked: Asked) -> dict[str, Any] | str:
    """Return the values of the shape asked for, or the text of an answer."""
    schema = asked.body.get("response_format", {}).get("json_schema", {}).get("schema")
    return _object(asked, schema, schema) if schema else cited(asked)


@dataclass
class Usual:
    """A script of sensible replies, each after so many seconds."""

    seconds: float = 0.0

    def reply(self, asked: Asked) -> Said:
        """Return what is said to a call."""
        usual = sensible(asked)
        text = usual if isinstance(usual, str) else json.dumps(usual, ensure_ascii=False)
        return Said(text, seconds=self.seconds)
