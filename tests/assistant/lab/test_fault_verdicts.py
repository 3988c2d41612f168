"""Faults of servers and models: what is told apart by the rules, and that turns stay apart."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.steps import presence
from assistant.lab import fault_turns, fault_verdicts
from assistant.lab.fault_turns import Occupied
from assistant.lab.fault_verdicts import Row
from assistant.lab.judged_data import Unjudgeable
from assistant.lab.model_server import Call
from assistant.lab.scripted_faults import BY_NAME, FAULTS, ORDINARY, PAGES
from assistant.management.commands import evaluate

PASSAGE = " ".join(PAGES["winter.md"].split())
OTHER = " ".join(PAGES["warranty.md"].split())
SYSTEM = "# response\n\nYou answer from the passages alone and say nothing that they leave open."
USER = f"""<question-0c4ad826>
{ORDINARY.text}
</question-0c4ad826>
<passage-91be3f40 marker="C1">
{OTHER}
</passage-91be3f40>
<passage-5d1c07e2 marker="C2">
{PASSAGE}
</passage-5d1c07e2>"""
CALL = Call(
    "/none/v1/chat/completions",
    {},
    {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]},
    0.0,
)
CITATION = {"citation_status": "verified", "chunk_id": 1, "source": "a/winter.md"}
FOUND = {"chunk_id": 1, "title": "Winter", "section": "", "text": PAGES["winter.md"]}
ROW = Row(
    "none", [], "?", "refused", "completed", "model", "", None, {}, ["fence"], 5, {}, 9, 1.0, {},
    ["It was refused."], "",
)  # fmt: skip
# Sent as they are, these make a good answer.
HARMLESS = {
    "none", "answer cut off", "503 once", "nobody listens", "hang midway", "a character a second",
    "20 s a call", "no usage", "parts", "no markers", "unknown marker", "wrong markers",
    "1 MB answer", "element names",
    # The first answer is; what a reviewer makes of it is measured in turns.
    "repeats itself after a review", "strays after a review", "other words, all unsupported",
}  # fmt: skip

SPEAKING = [
    fault
    for fault in FAULTS
    if fault.name not in HARMLESS
    and fault.question is ORDINARY
    and (not fault.at or "response" in fault.at)
    and "".join((response := fault.reply(CALL, 0)).pieces or [response.text])
]


def reasons(text: str, fault: str = "none", **changes: Any) -> list[str]:
    """Why it is bad that this is approved as an answer with one verified citation."""
    given: dict[str, Any] = {
        "gets": "answered",
        "calls": 5,
        "citations": [CITATION | {"quote": "Winter"}],
    }
    payload = {"quality_decision": "approve", "search_results": [FOUND]}
    holds = fault_verdicts.held(text, [CALL])
    arguments = given | {"payload": payload, "text": text, "holds": holds} | changes
    return list(fault_verdicts.reasons(BY_NAME[fault], **arguments))


def test_there_are_as_many_faults_as_names_and_providers() -> None:
    assert len(BY_NAME) == len({fault.provider for fault in FAULTS}) == len(FAULTS) > 40


def test_what_a_model_in_good_health_says_is_good() -> None:
    assert reasons(BY_NAME["none"].reply(CALL, 0).text) == []


def test_the_place_itself_is_good() -> None:
    assert reasons(PAGES["winter.md"], gets="quoted") == []


@pytest.mark.parametrize("name", [fault.name for fault in SPEAKING])
def test_what_a_fault_says_instead_of_an_answer_is_told(name: str) -> None:
    response = BY_NAME[name].reply(CALL, 0)
    assert reasons("".join(response.pieces or [response.text]), name)


@pytest.mark.parametrize("gets", ["asked back", "declined", "refused", "expired", "error"])
def test_a_question_that_the_documents_answer_may_not_be_turned_away(gets: str) -> None:
    assert gets in reasons("I have no answer.", gets=gets)[0]


def test_a_sentence_that_its_passage_lacks_may_not_be_called_verified() -> None:
    text = BY_NAME["none"].reply(CALL, 0).text
    right, wrong = "Close the **main valve** first. [C2]", "Open the main valve first. [C2]"
    assert reasons(text, citations=[CITATION | {"quote": right}]) == []
    assert "verified" in reasons(text, citations=[CITATION | {"quote": wrong}])[0]


def test_another_page_than_the_right_one_is_no_source() -> None:
    other = CITATION | {"source": "a/warranty.md", "quote": "Winter"}
    assert "page" in reasons(BY_NAME["none"].reply(CALL, 0).text, citations=[other])[0]


def test_a_reply_without_end_may_be_quoted_and_not_answered() -> None:
    text = BY_NAME["none"].reply(CALL, 0).text
    assert reasons(text, "1 MB answer", gets="quoted") == []
    assert "without end" in reasons(text, "1 MB answer")[0]


def test_a_server_may_not_be_asked_again_and_again() -> None:
    text = BY_NAME["none"].reply(CALL, 0).text
    assert "105 times" in reasons(text, calls=105)[0]


def test_an_unknown_fault_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(CommandError, match="no fault 'colour'; there are: none; "):
        call_command("evaluate", "faults", "--only", "colour")


@pytest.mark.parametrize(("reasons", "code"), [([], 0), (["It was refused."], 1)])
def test_the_exit_code_says_whether_a_fault_ends_badly(
    monkeypatch: pytest.MonkeyPatch, reasons: list[str], code: int
) -> None:
    monkeypatch.setattr(fault_turns, "measure", lambda *_: [replace(ROW, reasons=reasons)])
    monkeypatch.setattr(evaluate, "call_command", lambda *_, **__: None)
    with pytest.raises(SystemExit) if code else nullcontext():
        call_command("evaluate", "faults")


def outcomes(row: SimpleNamespace) -> set[str]:
    """Why rules did the work, in a word each."""
    return {why.partition(":")[0] for why in row.degraded.values()}


@pytest.mark.django_db(transaction=True)
class TestTurns:
    """Turns that are asked side by side, each with a fault of its own."""

    def test_a_fault_meets_its_own_turn_alone(self, tmp_path: Path) -> None:
        names = ["none", "401", "500", "no usage"]
        file = tmp_path / "figures.json"
        call_command("evaluate", "faults", "--only", *names, "--save", str(file))
        rows = {
            row["fault"]: SimpleNamespace(**row) for row in json.loads(file.read_text())["rows"]
        }
        for healthy in ("none", "no usage"):
            assert (rows[healthy].gets, rows[healthy].degraded) == ("answered", {})
            assert rows[healthy].calls == sum(rows[healthy].prompts.values()) > 0
        assert rows["none"].prompt_tokens > 100
        assert rows["401"].gets == rows["500"].gets == "quoted"
        assert "key_refused" in outcomes(rows["401"])
        assert "server_error" in outcomes(rows["500"])
        assert outcomes(rows["401"]).isdisjoint(outcomes(rows["500"]) - {"breaker_open"})

    def test_where_workers_would_do_the_turns_nothing_is_measured(self) -> None:
        presence.announce([presence.SWEEPER])
        with pytest.raises(Occupied):
            fault_turns.measure([BY_NAME["none"]], lambda *_: None)


def test_the_table_has_a_line_for_each_fault() -> None:
    figures = fault_verdicts.figures([ROW])
    assert (figures["good"], figures["bad"]) == (0, ["none"])
    assert fault_verdicts.table(figures).row_count == 1


def test_what_was_saved_earlier_stands_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    fault_verdicts.save(fault_verdicts.figures([ROW]), file)
    now = fault_verdicts.figures([replace(ROW, gets="quoted", reasons=[])])
    shown = fault_verdicts.table(now, fault_verdicts.saved(file))
    assert [*shown.columns[2].cells] == ["bad: refused, 5 calls, 1.0 s"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": 1}'])
def test_what_was_not_saved_by_this_command_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "before.json"
    file.write_text(text)
    with pytest.raises(Unjudgeable, match="--save"):
        fault_verdicts.saved(file)
