"""OpenAPI examples: what is sent and answered, put together from one value for each field.

Fields of one name mean the same everywhere. `openapi_examples.json` has a value for a name, or for
`Shape.name` where it differs; `Shape 202` has what differs in answers of that status. What has no
fields goes by the name of its operation. Parts that have fields, choices and constants need none.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VALUES: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
JSON, EVENTS = "application/json", "text/event-stream"
REFERENCE = "#/components/schemas/"


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Give every body and every answer an example, where its view shows none."""
    shapes = result["components"]["schemas"]
    for name, status, media_type, content in _contents(result):
        if {"example", "examples"} & content.keys():
            continue
        schema = content["schema"]
        if media_type == JSON:
            shape = schema.get("$ref", "").removeprefix(REFERENCE)
            value = example(schema, shapes, name)
            differing = VALUES.get(f"{shape} {status}")
            content["example"] = value | differing if differing else value
        elif media_type == EVENTS:
            content["example"] = VALUES[f"{name} {media_type}"]
    return result


def _contents(result: dict[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield operation, status (of a body none), media type and content of all there are."""
    for methods in result["paths"].values():
        for operation in methods.values():
            parts = {"": operation.get("requestBody", {})} | operation["responses"]
            for status, part in parts.items():
                for media_type, content in part.get("content", {}).items():
                    yield operation["operationId"], status, media_type, content


def example(schema: dict[str, Any], shapes: dict[str, Any], name: str, of: str = "") -> Any:
    """Return an example of a shape, for the field `name` of the shape `of`.

    Raises KeyError for a field that has no value here.
    """
    if (own := f"{of}.{name}") in VALUES:
        return VALUES[own]
    if reference := schema.get("$ref"):
        of = reference.removeprefix(REFERENCE)
        return example(shapes[of], shapes, name, of)
    if "properties" in schema:
        inner = schema["properties"].items()
        return {each: example(said, shapes, each, of) for each, said in inner}
    return _value(schema, shapes, name, of)


def _value(schema: dict[str, Any], shapes: dict[str, Any], name: str, of: str) -> Any:
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        return VALUES[name] if VALUES.get(name) in choices else choices[0]
    for several in ("allOf", "oneOf", "anyOf"):
        if several in schema:
            return example(schema[several][0], shapes, name, of)
    if schema.get("type") == "null":
        return None
    if schema.get("type") == "array" and {"$ref", "properties"} & schema["items"].keys():
        return [example(schema["items"], shapes, name, of)]
    return VALUES[name]
