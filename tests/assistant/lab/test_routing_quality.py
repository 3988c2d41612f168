"""Measuring: where messages are sent against where they belong, and what that is trained on."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from agents.intake.exemplars import lines
from agents.intake.route_likelihood import KINDS
from assistant.lab.routes_fit import BANKING, CLINC, fit, texts_of, weights_of

MESSAGES = [
    ("I want my money back.", "billing"),
    ("How do I configure an option?", "billing"),
    ("Why was I charged twice?", "documentation"),
    ("How do I use the API?", "documentation"),
    ("Good morning.", "fallback"),
]


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Five messages, two of them with another route than they take."""
    path = tmp_path / "messages.jsonl"
    path.write_text(
        "\n".join(json.dumps({"text": text, "route": route}) for text, route in MESSAGES)
    )
    return path


def test_the_command_counts_by_route_what_was_found_and_what_is_right(judged: Path) -> None:
    out = StringIO()
    call_command("evaluate", "routing", str(judged), "--json", stdout=out)
    figures = json.loads(out.getvalue())
    assert (figures["messages"], figures["accuracy"], figures["fallback"]) == (5, 0.6, 0.2)
    assert figures["by_route"]["billing"] == {"messages": 2, "found": 0.5, "right": 0.5}
    assert figures["by_route"]["fallback"] == {"messages": 1, "found": 1, "right": 1}
    assert figures["taken_for"] == {
        "documentation for billing": 1,
        "billing for documentation": 1,
    }


def test_the_table_has_a_line_for_each_route(judged: Path) -> None:
    out = StringIO()
    call_command("evaluate", "routing", str(judged), stdout=out)
    assert "5 messages" in out.getvalue()
    assert "fallback" in out.getvalue()


def test_a_line_with_a_route_that_does_not_exist_is_named(judged: Path) -> None:
    judged.write_text(judged.read_text() + '\n{"text": "hello", "route": "kitchen"}')
    with pytest.raises(CommandError, match="line 6"):
        call_command("evaluate", "routing", str(judged))


def test_an_empty_file_is_refused(judged: Path) -> None:
    judged.write_text("")
    with pytest.raises(CommandError, match="no message"):
        call_command("evaluate", "routing", str(judged))


def test_intents_of_money_are_trained_on_as_billing_and_doubtful_ones_left_out(
    tmp_path: Path,
) -> None:
    data: dict[str, list[list[str]]] = {"train": [["what do i owe", "bill_balance"]], "val": []}
    data |= {"oos_train": [["how tall is it", "oos"]], "oos_val": [["my taxes", "taxes"]]}
    for name, text in (
        (CLINC, json.dumps(data)),
        (BANKING, 'text,category\n"Refund me, now",request_refund\n'),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found, exemplars = texts_of(tmp_path)
    assert [tuple(each) for each in found] == [
        ("what do i owe", "billing"),
        ("how tall is it", "other"),
        ("Refund me, now", "billing"),
    ]
    assert len(exemplars) > 3 * len(lines("route_fallback"))


def test_both_kinds_weigh_the_same_however_many_they_are_and_are_learned() -> None:
    kinds = np.array([0] * 3 + [1] * 9)
    vectors = np.array([[float(kind), 1.0 - kind] for kind in kinds], np.float32)
    weights = weights_of([KINDS[kind] for kind in kinds], 1.0)
    assert weights[kinds == 0].sum() == pytest.approx(weights[kinds == 1].sum())
    trained = fit(vectors, kinds, weights)
    told = trained.probabilities(vectors, [""] * len(kinds)).argmax(axis=1)
    assert told.tolist() == kinds.tolist()
