"""The citation auditor: what it gives."""

from agents.contract import REGISTRY
from agents.names import Role


def test_without_a_model_it_says_that_it_needs_one() -> None:
    given = REGISTRY[Role.CITATION_AUDITOR]({"canonical_question": "Does it meet the law?"})
    assert given["agent_outputs"]["citation_auditor"]["reason"] == "model"
    assert given["is_incomplete"]
