"""Schema: what a model is told of a shape, and what its reply must be."""

import json
from enum import StrEnum
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from agents.analysis.shapes import SHAPES
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.schema import SENT_BACK, form_of, parse, repair, schema_of, unfilled
from agents.names import Role
from tests.agents.llm.probe import shaped_request


class Colour(StrEnum):
    """One of a few."""

    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    """A part of the shape."""

    title: str = Field(description="what it is called.", max_length=20)
    colour: Colour | None


class Whole(BaseModel):
    """A shape with everything that shapes have."""

    share: float = Field(default=0.5, ge=0, le=1)
    parts: list[Part] = Field(max_length=3)
    kind: Literal["a", "b"]


class Long(BaseModel):
    """A text that takes servers long to prepare for."""

    text: str = Field(max_length=2000)


def test_a_schema_holds_nothing_that_strict_servers_refuse() -> None:
    schema = schema_of(Whole)
    assert schema["required"] == ["share", "parts", "kind"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Part"]["required"] == ["title", "colour"]
    assert schema["$defs"]["Part"]["additionalProperties"] is False
    for word in ('"default"', '"maximum"', '"title": "'):
        assert word not in json.dumps(schema)


def test_low_bounds_of_length_are_told_as_they_are() -> None:
    schema = schema_of(Whole)
    assert schema["properties"]["parts"]["maxItems"] == 3
    assert schema["$defs"]["Part"]["properties"]["title"]["maxLength"] == 20
    assert schema_of(Long)["properties"] == {
        "text": {"type": "string", "description": "at most 2000 characters."}
    }


def test_bounds_are_told_in_words() -> None:
    schema = schema_of(Whole)
    assert schema["properties"]["share"]["description"] == "at least 0, at most 1."
    assert schema["properties"]["parts"]["description"] == "at most 3 items."
    title = schema["$defs"]["Part"]["properties"]["title"]
    assert title["description"] == "what it is called; at most 20 characters."


RIGHT = '{"title": "x {y}", "colour": "red"}'


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        f"\n{RIGHT}\n",
        f"```json\n{RIGHT}\n```",
        f"```\n{RIGHT}\n```",
        f"Here it is: {RIGHT} and that {{is}} all.",
    ],
)
def test_a_reply_is_read_with_what_models_put_around_it(text: str) -> None:
    assert parse(text, Part) == Part(title="x {y}", colour=Colour.RED)


class Learnt(BaseModel):
    """What may be nothing."""

    topic: str
    facts: list[str]
    language: str | None
    share: float = 0.5
    parts: list[Part] = []


def test_null_stands_for_nothing_where_there_is_a_nothing() -> None:
    text = """{"topic": null, "facts": null, "language": null, "share": null,
               "parts": [{"title": null, "colour": null}]}"""
    learnt = parse(text, Learnt)
    assert (learnt.topic, learnt.facts, learnt.language, learnt.share) == ("", [], None, 0.5)
    assert learnt.parts == [Part(title="", colour=None)]


@pytest.mark.parametrize("text", ['{"share": 0.5, "parts": [], "kind": null}', "null", "[null]"])
def test_null_stands_for_nothing_else(text: str) -> None:
    with pytest.raises(ModelFailure):
        parse(text, Whole)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", Outcome.EMPTY),
        (" \n", Outcome.EMPTY),
        ("no", Outcome.MALFORMED),
        ('{"title": ' + "1" * 5000 + "}", Outcome.MALFORMED),
        ('{"title": "x\\u0000", "colour": null}', Outcome.MALFORMED),
        ('{"title": "x\\ud800", "colour": null}', Outcome.MALFORMED),
        ('{"title": "x\ufffd", "colour": null}', Outcome.MALFORMED),
        ('{"title": "x", "col', Outcome.MALFORMED),
        ('["x", "red"]', Outcome.WRONG_SCHEMA),
        ('{"title": "x"}', Outcome.WRONG_SCHEMA),
        ('{"title": "x", "colour": "green"}', Outcome.WRONG_SCHEMA),
        ('{"title": "' + "x" * 21 + '", "colour": null}', Outcome.WRONG_SCHEMA),
    ],
)
def test_anything_else_has_its_outcome(text: str, outcome: Outcome) -> None:
    with pytest.raises(ModelFailure) as caught:
        parse(text, Part)
    assert caught.value.outcome is outcome


def test_of_a_long_reply_that_is_none_little_is_sent_back() -> None:
    change = repair(ModelFailure(Outcome.MALFORMED, "no JSON", reply="x" * 100_000))
    assert change
    assert len(change(shaped_request()).messages[-2]["content"]) == SENT_BACK


@pytest.mark.parametrize("shape", SHAPES.values())
def test_a_form_has_the_shape_and_cannot_be_handed_in_as_it_is(shape: type[BaseModel]) -> None:
    form = form_of(shape)
    assert json.loads(form).keys() == shape.model_fields.keys()
    assert len(form) < len(json.dumps(schema_of(shape)))
    with pytest.raises(ModelFailure, match="form is not filled in"):
        parse(form, shape, unfilled)


def test_a_form_says_what_goes_where_and_has_lists_last() -> None:
    form = json.loads(form_of(SHAPES[Role.REQUIREMENT_EXTRACTOR]))
    (requirement,) = form["requirements"]
    assert requirement["severity"] == "<mandatory | conditional | recommended>"
    assert list(requirement)[-1] == "evidence"
    assert requirement["evidence"] == ["<ids of the passages that show it>"]
