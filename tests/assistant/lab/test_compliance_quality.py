"""Compliance quality: judged contracts, what is found of them, and what a model says."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from agents.names import Role
from assistant.lab import compliance_quality
from assistant.lab.judged_data import Unjudgeable
from assistant.lab.verdict import Verdict, judged
from knowledge.ingestion import run
from tests.scripted import Response, Scripted, shaped

SPANS = [
    "The tenant shall pay the rent on the first day of the month.",
    "Dogs and cats must not be kept in the flat.",
    "The landlord heats the stairs in winter.",
    "This agreement was signed in the harbour office.",
]
LABELS = {
    "rent": {
        "short_description": "Rent",
        "hypothesis": "The rent is due at the month's beginning.",
    },
    "pets": {"short_description": "Pets", "hypothesis": "The tenant may keep dogs in the flat."},
    "bikes": {"short_description": "Bicycles", "hypothesis": "Bicycles may be kept in the hall."},
}
SAID = {
    "rent": {"choice": "Entailment", "spans": [0]},
    "pets": {"choice": "Contradiction", "spans": [1]},
    "bikes": {"choice": "NotMentioned", "spans": []},
}


def contract(number: int, said: dict[str, Any], spans: Sequence[str] = SPANS) -> dict[str, Any]:
    text = " ".join(spans)
    places = [(text.index(each), text.index(each) + len(each)) for each in spans]
    return {"id": number, "text": text, "spans": places, "annotation_sets": [{"annotations": said}]}


def written(path: Path, *contracts: dict[str, Any]) -> Path:
    file = path / "dev.json"
    file.write_text(json.dumps({"documents": contracts, "labels": LABELS}), encoding="utf-8")
    return file


@pytest.mark.django_db(transaction=True)
def test_evidence_is_found_in_its_own_contract_and_verdicts_are_compared(tmp_path: Path) -> None:
    other = [each.replace("the", "our") for each in SPANS]
    file = written(tmp_path, contract(1, SAID), contract(2, SAID, other))
    contracts = compliance_quality.contracts_of(file)
    collection = compliance_quality.take_in(contracts, file, run)
    asked: list[Sequence[str]] = []

    def says(requirement: str, passages: Sequence[str]) -> Verdict | None:
        asked.append(passages)
        if "Bicycles" in requirement:
            return None
        named = [n for n, each in enumerate(passages) if "rent" in each and "rent" in requirement]
        return Verdict(verdict="Entailment" if named else "NotMentioned", places=named)

    figures = compliance_quality.evaluate(contracts, collection, says)
    assert len(asked) == 6
    assert not [each for passages in asked for each in passages if each not in SPANS + other]
    assert figures["recall@10"]["search"] == 1.0
    assert figures["ratio"] >= 1
    assert figures["verdicts"]["accuracy"] == 0.5
    assert figures["requirements"]["rent"]["evidence"] == {"precision": 1.0, "recall": 1.0}
    assert figures["requirements"]["pets"]["evidence"] == {"precision": None, "recall": 0.0}
    assert compliance_quality.table(figures)


def ruled(verdict: str, *evidence: str) -> Response:
    """Return what the compliance agent's model says of the one requirement."""
    said = {"requirement_id": "REQ-001", "verdict": verdict, "evidence": list(evidence)}
    return shaped(
        summary="", verdicts=[said | {"explanation": "so", "confidence": 0.9}], clashes=[]
    )


def test_a_verdict_names_passages_that_there_are_and_is_paid_once(
    models: Scripted, settings: Settings
) -> None:
    choice = models.model(Role.COMPLIANCE).choice
    settings.MODELS = settings.MODELS | {Role.COMPLIANCE: choice}
    models.says("compliance", ruled("compliant", "p00000001", "p00000007", "p00000001"))
    for _ in range(2):
        found = judged("It is heated.", SPANS)
        assert found is not None
        assert (found.verdict, found.places) == ("Entailment", [1])
    assert len(models.server.prompts()) == 1
    models.says("compliance", ruled("violation", "p00000009"))
    other = judged("It is cold.", SPANS)
    assert other is not None
    assert (other.verdict, other.places) == ("NotMentioned", [])
    models.says("compliance", Response(status=401))
    assert judged("It is dark.", SPANS) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"spans": []}, "spans"),
        ({"annotation_sets": []}, "annotation_sets"),
        ({"annotation_sets": [{"annotations": {"x": SAID["rent"]}}]}, "no label 'x'"),
        (
            {
                "annotation_sets": [
                    {"annotations": {"rent": {"choice": "Entailment", "spans": [9]}}}
                ]
            },
            "no span 9",
        ),
        ({"annotation_sets": [{"annotations": {"rent": {"choice": "Maybe"}}}]}, "choice"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(
    change: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(Unjudgeable, match=problem):
        compliance_quality.contracts_of(written(tmp_path, contract(1, SAID) | change))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unjudgeable, match="No such file"):
        compliance_quality.contracts_of(tmp_path / "none.json")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    with pytest.raises(Unjudgeable, match=r"list\.json"):
        compliance_quality.contracts_of(tmp_path / "list.json")
