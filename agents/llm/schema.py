"""Schema: the shape of a reply that a model is given, and how one without it is asked again."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, StringConstraints, ValidationError

from agents.llm.degeneration import broken
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Request
from knowledge.postgres_text import storable_json
from prompts.prompt import Prompt, Rendered

REPAIR = Prompt("_repair", "problem", "schema")
# A reply that did not have its shape is worth one more try, of the same model.
REPAIRABLE = frozenset({Outcome.EMPTY, Outcome.MALFORMED, Outcome.WRONG_SCHEMA})
# So many times the tokens for a model that used them all up before it said a word.
THINKING = 4
FENCE = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
UNFILLED = re.compile(r"\s*<[^<>]+>\s*")
SHOWN = 200
PROBLEMS = 5
# So much of a reply that is to be mended is sent back: what follows would tell nothing more.
SENT_BACK = 2000
# Bounds, in words: strict endpoints refuse a schema with one they don't know. The reply is held to
# them all the same.
BOUNDS: Mapping[str, str] = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "of the form {}",
}
# What stands for nothing, by the type of a property.
NOTHING: Mapping[Any, Any] = {"string": "", "array": []}
LEFT_OUT = {"default", "title", "uniqueItems", "format", *BOUNDS}
# Said as they are, too, to servers that take them: without, a model that is held to its shape can
# go on with a text or a list until its tokens are used up. Some servers take minutes to prepare for
# a longer one.
HIGHEST = {"maxItems": 100, "maxLength": 300}
Shape = TypeVar("Shape", bound=BaseModel)
# A field of a reply that has to say something.
NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def schema_of(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a shape as strict endpoints want it.

    Every property is required and none may be added, since strict mode knows no defaults; bounds
    stand in the descriptions, and low ones of length beside.
    """
    schema: dict[str, Any] = _strict(shape.model_json_schema())
    return schema


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    strict = {name: _strict(value) for name, value in node.items() if name not in LEFT_OUT}
    strict |= {name: node[name] for name in HIGHEST if node.get(name, inf) <= HIGHEST[name]}
    bounds = [words.format(node[name]) for name, words in BOUNDS.items() if name in node]
    if bounds:
        sentences = [str(node["description"]).rstrip(".")] if "description" in node else []
        strict["description"] = f"{'; '.join([*sentences, ', '.join(bounds)])}."
    if node.get("type") == "object" and "properties" in node:
        strict["properties"] = {name: _strict(each) for name, each in node["properties"].items()}
        strict |= {"additionalProperties": False, "required": list(node["properties"])}
    return strict


def form_of(shape: type[BaseModel]) -> str:
    """Return a shape as JSON that is to be filled in; in `<…>` stands what goes there.

    Small models that are shown a schema write it down again instead of what it asks for.
    """
    schema = schema_of(shape)
    return json.dumps(_form(schema, "", schema.get("$defs", {})), ensure_ascii=False)


def unfilled(text: str) -> str:
    """Return in words that a text was not filled into its form, or is broken, or nothing."""
    return "the form is not filled in" if UNFILLED.fullmatch(text) else broken(text)


def _form(node: dict[str, Any], name: str, named: dict[str, Any]) -> Any:
    node = named.get(node.get("$ref", "").removeprefix("#/$defs/"), node)
    if "properties" in node:
        parts = {part: _form(each, part, named) for part, each in node["properties"].items()}
        # Lists last: they are long, and passages come after what they show.
        return dict(sorted(parts.items(), key=lambda part: isinstance(part[1], list)))
    if node.get("type") == "array":
        return [_form({"description": node.get("description", name)} | node["items"], name, named)]
    if "enum" in node:
        return f"<{' | '.join(map(str, node['enum']))}>"
    if node.get("type") == "boolean":
        return "<true | false>"
    return f"<{str(node.get('description', name)).rstrip('.')}>"


def parse(
    text: str,
    shape: type[Shape],
    fault: Callable[[str], str] = broken,
    *,
    what: str = "the reply",
) -> Shape:
    """Return the reply in its shape. Raises ModelFailure: EMPTY, MALFORMED or WRONG_SCHEMA.

    `fault` returns in words why one of its texts is none, or nothing. `what` is how the reply is
    called in the message.
    """
    if not text.strip():
        raise ModelFailure(Outcome.EMPTY, f"{what} is empty")
    try:
        schema = shape.model_json_schema()
        read = _json(text)
        if problem := next(filter(None, map(fault, _texts(read))), ""):
            raise ModelFailure(Outcome.MALFORMED, problem, reply=text)
        values = _without_nulls(storable_json(read), schema, schema.get("$defs", {}))
        return shape.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or what}: {each['msg']}"
            for each in error.errors()[:PROBLEMS]
        )
        raise ModelFailure(
            Outcome.WRONG_SCHEMA,
            f"{what} does not have the shape asked for: {problems}",
            reply=text,
        ) from error
    # Also for a number of too many digits, and for brackets nested without end.
    except (ValueError, RecursionError) as error:
        raise ModelFailure(
            Outcome.MALFORMED,
            f"{what} is not JSON ({error}): {text.strip()[:SHOWN]!r}",
            reply=text,
        ) from error


def _json(text: str) -> Any:
    """Read the JSON, also out of a code fence or between two sentences around it."""
    if fenced := FENCE.match(text):
        text = fenced[1]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        begin = text.find("{")
        if begin < 0:
            raise
        return json.JSONDecoder().raw_decode(text, begin)[0]


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value of JSON, names left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _without_nulls(value: Any, node: dict[str, Any], named: dict[str, Any]) -> Any:
    """Take null, where none is allowed, for the nothing that is: many models mean it so."""
    node = named.get(node.get("$ref", "").removeprefix("#/$defs/"), node)
    if isinstance(value, list):
        return [_without_nulls(each, node.get("items", {}), named) for each in value]
    if not isinstance(value, dict):
        return value
    values = {}
    for name, each in value.items():
        part = node.get("properties", {}).get(name, {})
        if each is not None or "anyOf" in part:
            values[name] = _without_nulls(each, part, named)
        elif "default" not in part:
            values[name] = NOTHING.get(part.get("type"))
    return values


def at_most(texts: Sequence[str], most: int, longest: int) -> list[str]:
    """Return the texts that say something, no more and no longer than this, each once."""
    cut = (" ".join(text.split())[:longest] for text in texts)
    return list(dict.fromkeys(text for text in cut if text))[:most]


def repair(failure: ModelFailure) -> Callable[[Request], Request] | None:
    """Return how a request is put again after this failure; None: it would not help."""
    if not failure.mendable:
        return None
    if failure.outcome is Outcome.TRUNCATED:
        return partial(with_more_tokens, 2 if failure.reply else THINKING)
    if failure.outcome not in REPAIRABLE:
        return None
    reply = {"role": "assistant", "content": failure.reply[:SENT_BACK] or "(nothing)"}

    def repaired(request: Request) -> Request:
        problem = _repair_prompt(request, failure.problem).messages[1]
        return replace(request, messages=(*request.messages, reply, problem))

    return repaired


def with_more_tokens(times: int, request: Request) -> Request:
    """Return the request with so many times the tokens for its reply."""
    return replace(request, max_tokens=times * request.max_tokens)


def _repair_prompt(request: Request, problem: str) -> Rendered:
    return REPAIR.render({"problem": problem, "schema": json.dumps(request.schema)})
