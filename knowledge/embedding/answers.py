"""Answers: what an embedding endpoint said, taken apart and not believed."""

import numpy as np
from pydantic import BaseModel, ValidationError

from knowledge.embedding.embedder import Vectors
from knowledge.embedding.errors import Malformed

SHOWN = 160  # characters of a strange answer


class Item(BaseModel):
    """One vector, and which text it belongs to."""

    embedding: list[float]
    index: int | None = None


class Usage(BaseModel):
    """What the answer cost."""

    prompt_tokens: int = 0


class Answer(BaseModel):
    """The body of an answer of `POST /embeddings`."""

    data: list[Item]
    usage: Usage | None = None


def vectors_of(body: bytes, count: int) -> tuple[Vectors, int]:
    """Return the unit vectors of `count` texts in their order, and the tokens they cost.

    Raises Malformed, with what is wrong.
    """
    try:
        answer = Answer.model_validate_json(body)
    except ValidationError as error:
        said = body[:SHOWN].decode(errors="replace")
        raise Malformed(f"it answered something else than vectors: {said!r}") from error
    items = ordered(answer.data, count)
    lengths = {len(item.embedding) for item in items}
    if len(lengths) != 1:
        raise Malformed(f"its vectors differ in length: {sorted(lengths)}")
    tokens = answer.usage.prompt_tokens if answer.usage else 0
    return unit([item.embedding for item in items]), tokens


def ordered(items: list[Item], count: int) -> list[Item]:
    """Return the items in the order of the texts; servers may answer in another."""
    if len(items) != count:
        raise Malformed(f"it answered {count} texts with {len(items)} vectors")
    places = [place if item.index is None else item.index for place, item in enumerate(items)]
    if sorted(places) != list(range(count)):
        raise Malformed(f"its vectors are numbered {sorted(places)[:8]} instead of from 0 up")
    return [item for _, item in sorted(zip(places, items, strict=True), key=lambda each: each[0])]


def unit(rows: list[list[float]]) -> Vectors:
    """Return the rows scaled to length 1, as not every model leaves them."""
    vectors = np.array(rows, dtype=np.float64)
    if not np.isfinite(vectors).all():
        raise Malformed("its vectors hold what is no number")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not norms.all():
        raise Malformed("it answered with a vector of zeros")
    scaled: Vectors = (vectors / norms).astype(np.float32)
    return scaled
