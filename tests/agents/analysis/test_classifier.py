"""The classifier: what it gives."""

from agents.contract import REGISTRY
from agents.names import Role


def test_without_a_model_it_says_that_it_needs_one() -> None:
    given = REGISTRY[Role.CLASSIFIER]({"canonical_question": "Does it meet the law?"})
    assert given["agent_outputs"]["classifier"]["reason"] == "model"
    assert given["is_incomplete"]
