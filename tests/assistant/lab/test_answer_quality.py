"""Measuring: what comes back to judged questions, and how it is counted."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from agents.models import Envelope
from assistant.lab.answer_quality import (
    Question,
    ask_all,
    figures,
    kind_of,
    questions_of,
    saving,
    table,
)
from assistant.lab.judged_data import Unjudgeable

RIGHT = {"question": "How long?", "answer": "two long years", "documents": ["care.md"]}
QUESTIONS = [
    Question.model_validate(RIGHT | {"answerable": True}),
    Question.model_validate(RIGHT | {"question": "How wide?", "sources": ["other.md"]}),
    Question.model_validate({"question": "How far?", "answerable": False}),
]


def turn(text: str, **more: Any) -> Envelope:
    payload = {
        "stage": "quality",
        "answer_form": "quoted",
        "response": f"{text} [C1]\n\nSources:\n- Care — handbook/care.md (version 1)",
        "generation_confidence": 0.85,
        "citations_used": [{"source": "handbook/care.md"}],
        "search_results": [{"source": "handbook/care.md#page=3"}, {"source": "handbook/other.md"}],
    }
    return Envelope(payload=payload | more)


def measured(*turns: Envelope) -> dict[str, Any]:
    left = list(turns)
    return figures(ask_all(QUESTIONS[: len(turns)], lambda _: left.pop(0)), None)


def test_a_reply_counts_by_its_source_its_words_and_its_confidence() -> None:
    counted = measured(turn("It lasts two years."), turn("It lasts two years."))
    assert counted["answerable"]["answered"] == 1
    assert counted["cites_right"] == counted["cites_right_first"] == 0.5
    assert counted["found"] == counted["answered_of_found"] == 1
    assert counted["recall"]["mean"] == pytest.approx(2 / 3)
    assert counted["calibration"] == [{"from": 0.8, "answers": 2, "right": 0.5}]
    table(counted)


def test_an_answer_to_what_has_none_is_wrong_whatever_it_cites() -> None:
    counted = measured(turn("x"), turn("x"), turn("It is far."))
    assert counted["unanswerable"] == {
        "questions": 1, "answered": 1, "closest": 0, "asked_back": 0, "declined": 0, "other": 0,
    }  # fmt: skip
    assert counted["calibration"][0]["right"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"answer_form": "closest"}, "closest"),
        ({"answer_form": "written"}, "answered"),
        ({"stage": "clarification", "clarification_reason": "vague_request"}, "asked_back"),
        ({"stage": "clarification", "clarification_reason": "harmful_content"}, "declined"),
        ({"citations_used": []}, "other"),
        ({"stage": "fallback"}, "other"),
    ],
)
def test_a_turn_tells_what_kind_of_reply_it_ended_with(payload: dict[str, Any], kind: str) -> None:
    assert kind_of(turn("x").payload | payload) == kind


def test_only_the_end_of_a_path_names_a_source() -> None:
    counted = measured(turn("x", citations_used=[{"source": "handbook/aftercare.md"}]))
    assert counted["cites_right"] == 0


def test_replies_are_kept_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with saving(path) as keep:
        ask_all(QUESTIONS[:1], lambda _: turn("It lasts."), keep=keep)
    (line,) = path.read_text("utf-8").splitlines()
    kept = json.loads(line)
    assert (kept["question"], kept["reply"], kept["kind"]) == (
        "How long?", "It lasts. [C1]", "answered",
    )  # fmt: skip
    nowhere = saving(tmp_path / "nowhere" / "replies.jsonl")
    with pytest.raises(Unjudgeable, match="--save"), nowhere:
        pass


def test_a_file_without_questions_cannot_be_measured(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n")
    with pytest.raises(Unjudgeable, match="no questions"):
        questions_of(path)
    path.write_text('{"question": ""}\n')
    with pytest.raises(Unjudgeable, match="line 1"):
        questions_of(path)


def test_the_documentation_counts_the_replies_that_were_judged() -> None:
    lines = Path(__file__).with_name("judged_replies.jsonl").read_text("utf-8").splitlines()
    judged = Counter(json.loads(line)["judged"] for line in lines)
    page = (settings.BASE_DIR / "docs" / "operating.md").read_text("utf-8")
    assert f"{judged['right']} are right, {judged['partly']} partly" in page
    assert f"{judged['wrong']} are wrong and look right" in page


def counted(name: str) -> tuple[Counter[str], int, int, str]:
    """Return judgements of what is answerable, its hedged right ones, all questions, the page."""
    path = Path(__file__).with_name(name)
    replies = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    able = [each for each in replies if each["answerable"]]
    hedged = sum(each["judged"] == "right" and each["kind"] == "closest" for each in able)
    page = (settings.BASE_DIR / "docs" / "operating.md").read_text("utf-8")
    return Counter(each["judged"] for each in able), hedged, len(replies), page


def test_the_documentation_counts_the_replies_to_situations_that_were_judged() -> None:
    judged, hedged, asked, page = counted("judged_situations.jsonl")
    for sentence in (
        f"{asked} questions that tell of a situation",
        f"of {judged.total()} that the pages answer {judged['right'] - hedged} are right",
        f"{hedged} are the right place but called only the closest, {judged['partly']} partly",
        f"{judged['closest']} a place that does not help",
        f"{judged['wrong']} wrong and look right, and {judged['needless']} questions needless",
    ):
        assert sentence in page


def test_the_documentation_counts_the_replies_to_paraphrases_that_were_judged() -> None:
    judged, hedged, asked, page = counted("judged_paraphrases.jsonl")
    for sentence in (
        f"{asked} questions in words that are not the pages'",
        f"of {judged.total()} that the pages answer {judged['right']} are right ({hedged} of",
        f"{judged['partly']} partly, {judged['closest']} a place that does not help",
        f"{judged['wrong']} wrong and looks right, {judged['needless']} questions needless",
        f"and {judged['declined']} was declined",
    ):
        assert sentence in page


def test_the_documentation_counts_the_replies_about_a_product_nobody_had_looked_at() -> None:
    judged, hedged, asked, page = counted("judged_strangers.jsonl")
    for sentence in (
        f"{asked} questions that a language model wrote from the pages as users",
        f"of {judged.total()} that the pages answer {judged['right']} are right ({hedged} of",
        f"{judged['closest']} a place that does not help and is called the closest",
        f"{judged['wrong']} wrong and look right; nobody was asked back or declined",
    ):
        assert sentence in page
    assert judged.keys() == {"right", "closest", "wrong"}


def judged_with_a_model() -> list[dict[str, Any]]:
    lines = Path(__file__).with_name("judged_model_replies.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("row", "profile"),
    [
        ("without a model", "extractive"),
        ("`MODEL_PROFILE=answer`", "answer"),
        ("`MODEL_PROFILE=full`", "full"),
    ],
)
def test_the_documentation_counts_what_a_small_model_was_judged_to_be_worth(
    row: str, profile: str
) -> None:
    replies = judged_with_a_model()
    asked = {line["question"] for line in replies if line["profile"] == "answer"}
    mine = [line for line in replies if line["profile"] == profile and line["question"] in asked]
    assert len(mine) == len(asked)
    cells = [
        str(Counter(line["judged"] for line in mine if line["answerable"] is able)[word])
        for able, words in (
            (True, ("right", "partly", "closest", "wrong")),
            (False, ("right", "wrong")),
        )
        for word in words
    ]
    page = (settings.BASE_DIR / "docs" / "models.md").read_text("utf-8")
    assert f"| {row} | {' | '.join(cells)} |" in page


def test_a_small_model_was_judged_right_more_often_and_declined_nothing() -> None:
    right: Counter[str] = Counter()
    replies = judged_with_a_model()
    asked = {line["question"] for line in replies if line["profile"] == "answer"}
    for line in replies:
        if line["answerable"] and line["question"] in asked:
            right[line["profile"]] += line["judged"] == "right"
            assert line["kind"] in {"answered", "closest"}
    assert min(right["answer"], right["full"]) > right["extractive"]
