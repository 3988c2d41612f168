"""Measuring: what is said of citations against what people judged."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from assistant.lab.citation_quality import (
    Claim,
    attribution,
    claims_of,
    figures,
    passage,
    windows,
)

EVIDENCE = ["Press the red button for five seconds.", "Descale it monthly.", "x" * 3000, "The end."]


def line(claim: str, label: str, **more: object) -> str:
    return json.dumps({"claim": claim, "evidence": EVIDENCE, "label": label} | more)


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Three claims of which one holds, one has another unit and one came from nowhere."""
    path = tmp_path / "claims.jsonl"
    path.write_text(
        "\n".join(
            [
                line("press the red button for five seconds", "supported"),
                line("Press the red button for 50 seconds.", "partially_supported"),
                line("Press the button in front of https://whales.example.", "not_supported"),
            ]
        )
    )
    return path


def test_the_command_prints_how_far_the_statuses_agree(judged: Path) -> None:
    out = StringIO()
    call_command("evaluate", "citations", str(judged), "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert (found["claims"], found["supported"], found["removed"]) == (3, 1, 0)
    assert found["verified"] == {"said": 1, "precision": 1, "recall": 1, "f1": 1}
    assert found["unsupported"]["said"] == 2


def test_a_claim_is_given_its_passage_beside_others_and_none_where_that_is_missing() -> None:
    texts = [
        "Press the red button for five seconds.\nThe lamp goes out.",
        "Descale the machine monthly.",
        "The ferry sails at nine.",
    ]
    claims = [
        Claim(claim=said, evidence=text.splitlines(), label=label)
        for said, text, label in zip(
            ["The red button is pressed for five seconds.", "Descale it monthly.", "It is true."],
            texts,
            ["supported", "supported", "not_supported"],
            strict=True,
        )
    ]
    found = attribution(claims, texts)
    assert found == {"right": 1, "another": 0, "any": 0, "put_right": 1, "changed": 0}
    nowhere = claims[0].model_copy(update={"claim": "Whales sing in the winter."})
    assert attribution([nowhere, *claims[1:]], texts)["right"] == 0.5


def test_a_supported_claim_called_unsupported_is_one_that_answers_lose(judged: Path) -> None:
    found = figures(claims_of(judged), ["unsupported", "weak", "verified"])
    assert found["removed"] == 1
    assert found["verified"]["precision"] == found["verified"]["recall"] == 0
    assert found["unsupported"]["precision"] == 0


def test_of_a_long_text_the_window_that_supports_the_claim_is_taken() -> None:
    kind = {"evidence": EVIDENCE, "label": "supported"}
    last = Claim(claim="Descale it monthly.", supporting_sentences=[[3]], **kind)
    assert passage(last) == "The end."
    assert "Descale" in passage(Claim(claim="Descale it monthly.", **kind))
    assert windows([1000, 1000, 1000]) == [range(2), range(1, 3)]
    assert windows([9000, 5]) == [range(1), range(1, 2)]


def test_a_line_that_is_no_claim_is_named(judged: Path) -> None:
    judged.write_text(line("One.", "supported") + "\n" + line("Two.", "perhaps"))
    with pytest.raises(CommandError, match=r"line 2: 'label'"):
        call_command("evaluate", "citations", str(judged))


def test_claims_of_one_kind_measure_nothing(judged: Path) -> None:
    judged.write_text(line("One.", "supported"))
    with pytest.raises(CommandError, match="supported and others"):
        call_command("evaluate", "citations", str(judged))
