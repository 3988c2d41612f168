"""Journal: nothing is paid twice, and nobody is served from what is another's."""

import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db import close_old_connections, connection
from django.utils.timezone import now

from agents.llm import journal
from agents.llm.cost import cost
from agents.llm.outcomes import ModelFailure, Outcome
from agents.models import ModelCall, Price
from agents.names import Status
from agents.steps import step_lease
from agents.trace.trace import trace
from prompts.prompt import Prompt
from tests import factories
from tests.agents.llm.probe import GOOD, Verdict, llm
from tests.agents.steps.test_outage import broken
from tests.scripted import Call, Response, Scripted, shaped

FAKE = "fake@scripted"
ASKED: dict[str, Any] = {"question": "Is it good?", "hour": "noon"}


def numbers() -> list[int]:
    return list(ModelCall.objects.order_by("number").values_list("number", flat=True))


def test_a_step_that_is_done_again_finds_what_it_was_answered(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", GOOD)
    first = llm().ask(probe, Verdict, **ASKED)
    assert llm().ask(probe, Verdict, **ASKED) == first
    assert len(models.server.ledger) == ModelCall.objects.count() == 1


def test_repairs_and_second_models_are_found_again_too(models: Scripted, probe: Prompt) -> None:
    def script(call: Call) -> Response:
        return (
            GOOD if len(models.server.ledger) == 4 else Response(f"no {len(models.server.ledger)}")
        )

    models.says("probe", script)
    first = llm("spare@scripted").ask(probe, Verdict, **ASKED)
    for _ in (2, 3):
        again = llm("spare@scripted")
        assert again.ask(probe, Verdict, **ASKED) == first
        assert len(again.calls) == 4
    assert len(models.server.ledger) == ModelCall.objects.count() == 4


def test_a_reply_that_was_cut_is_found_again_with_the_one_that_had_more_room(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("{", finish="length"), GOOD)
    llm().ask(probe, Verdict, **ASKED)
    llm().ask(probe, Verdict, **ASKED)
    assert len(models.server.ledger) == 2


def test_a_written_text_is_told_again_from_the_journal(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response("It is good, and here is why."))
    llm().write(probe, **ASKED)
    heard: list[str] = []
    llm().write(probe, on_text=heard.append, **ASKED)
    assert heard == ["It is good, and here is why."]
    assert len(models.server.ledger) == 1


def test_a_call_that_brought_no_reply_is_made_again(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response(status=400), GOOD)
    with pytest.raises(ModelFailure):
        llm().ask(probe, Verdict, **ASKED)
    llm().ask(probe, Verdict, **ASKED)
    llm().ask(probe, Verdict, **ASKED)
    assert len(models.server.ledger) == 2
    assert list(ModelCall.objects.values_list("number", "outcome")) == [(1, "rejected"), (2, "ok")]


def test_two_equal_questions_of_one_step_get_a_reply_each_and_keep_it(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", shaped(good=True, why="first"), shaped(good=True, why="second"))
    for _ in (1, 2):
        model = llm()
        reasons = [model.ask(probe, Verdict, **ASKED).why for _ in range(2)]
        assert reasons == ["first", "second"]
    assert len(models.server.ledger) == 2


def test_an_earlier_attempt_that_goes_on_does_not_lose_its_number_to_the_next(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", GOOD)
    slow, quick = llm(), llm()
    quick.ask(probe, Verdict, question="Another one?", hour="noon")
    slow.ask(probe, Verdict, **ASKED)
    assert numbers() == [1, 2]


def test_attempts_that_store_at_the_same_time_both_store(models: Scripted, probe: Prompt) -> None:
    models.says("probe", lambda call: Response(GOOD.text, seconds=0.2))

    def ask(place: int) -> None:
        llm().ask(probe, Verdict, question=f"Number {place}?", hour="noon")
        close_old_connections()

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers() == [1, 2, 3, 4, 5, 6]


def test_no_connection_is_held_while_a_model_is_asked(models: Scripted, probe: Prompt) -> None:
    counts: list[dict[str, int]] = []

    def watching(call: Call) -> Response:
        counts.append(connection.pool.get_stats())  # type: ignore[attr-defined]
        return GOOD

    models.says("probe", watching)
    llm(owner="user:1/ada", fresh=60).ask(probe, Verdict, **ASKED)
    (stats,) = counts
    assert stats["pool_available"] == stats["pool_size"]


def asked_again(probe: Prompt, first: dict[str, Any], second: dict[str, Any]) -> ModelCall:
    """The row of the second of two equal questions, of two steps."""
    llm(subject="test/1", **first).ask(probe, Verdict, **ASKED)
    llm(subject="test/2", **second).ask(probe, Verdict, **ASKED)
    return ModelCall.objects.get(subject="test/2")


ADA: dict[str, Any] = {"owner": "user:1/ada", "fresh": 60}


def test_an_equal_question_of_the_same_owner_is_answered_from_before_and_costs_nothing(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", GOOD)
    row = asked_again(probe, ADA, ADA)
    assert len(models.server.ledger) == 1
    assert row.cached_from == ModelCall.objects.get(subject="test/1")
    assert row.cost == 0
    assert (row.reply, row.input_tokens) == (GOOD.text, None)


@pytest.mark.parametrize(
    "second",
    [
        ADA | {"owner": "user:1/bob"},
        ADA | {"owner": "user:2/ada"},
        ADA | {"owner": ""},
        ADA | {"fresh": 0},
        ADA | {"model": "other@scripted"},
    ],
)
def test_another_owner_or_model_or_no_cache_asks_again(
    models: Scripted, probe: Prompt, second: dict[str, Any]
) -> None:
    models.says("probe", GOOD)
    assert asked_again(probe, ADA, second).cached_from is None
    assert len(models.server.ledger) == 2


def test_a_reply_that_is_too_old_or_not_to_be_used_is_not_used_again(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", GOOD)
    old: dict[str, Any] = {"created": now() - timedelta(seconds=61)}
    for place, change in enumerate(({"reusable": False}, old, {"outcome": "wrong_schema"})):
        llm(subject=f"test/{place}", **ADA).ask(probe, Verdict, **ASKED)
        ModelCall.objects.update(**change)
    llm(subject="test/last", **ADA).ask(probe, Verdict, **ASKED)
    assert len(models.server.ledger) == 4


def test_a_copy_is_as_old_as_what_it_is_a_copy_of(models: Scripted, probe: Prompt) -> None:
    models.says("probe", GOOD)
    asked_again(probe, ADA, ADA)
    first = ModelCall.objects.filter(subject="test/1")
    first.update(created=now() - timedelta(seconds=61))
    llm(subject="test/3", **ADA).ask(probe, Verdict, **ASKED)
    assert len(models.server.ledger) == 2


def test_what_differs_only_in_what_is_said_to_be_alike_is_equal(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", GOOD)
    for place, hour in enumerate(("noon", "one", "two")):
        model = llm(subject=f"test/{place}", **ADA)
        model.ask(probe, Verdict, question="Is it good?", hour=hour, cached_as={"hour": "day"})
    assert len(models.server.ledger) == 1
    assert "It is noon." in models.server.ledger[0].user
    other = llm(subject="test/other", **ADA)
    other.ask(probe, Verdict, question="Is it bad?", hour="two", cached_as={"hour": "day"})
    assert len(models.server.ledger) == 2


def test_a_reply_that_needed_more_room_is_found_by_the_next_who_asks(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("{", finish="length"), GOOD, Response("never asked"))
    for subject in ("test/1", "test/2"):
        llm(subject=subject, **ADA).ask(probe, Verdict, **ASKED)
    assert [call.body["max_tokens"] for call in models.server.ledger] == [100, 200]


def test_an_equal_question_whose_reply_was_mended_gets_the_mended_one(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("no JSON"), GOOD, Response("never asked"))
    first = llm(subject="test/1", **ADA).ask(probe, Verdict, **ASKED)
    for subject in ("test/2", "test/3", "test/3"):
        assert llm(subject=subject, **ADA).ask(probe, Verdict, **ASKED) == first
    assert len(models.server.ledger) == 2
    copy = ModelCall.objects.get(subject="test/2")
    assert copy.cached_from == ModelCall.objects.get(subject="test/1", outcome="ok")


def test_what_could_not_be_mended_is_asked_again(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response("no JSON"), Response("still no JSON"), GOOD)
    with pytest.raises(ModelFailure):
        llm(subject="test/1", **ADA).ask(probe, Verdict, **ASKED)
    assert llm(subject="test/2", **ADA).ask(probe, Verdict, **ASKED).good
    assert len(models.server.ledger) == 3


def test_a_mended_reply_does_not_cross_owners(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response("no JSON"), GOOD)
    llm(subject="test/1", **ADA).ask(probe, Verdict, **ASKED)
    bob = ADA | {"owner": "user:1/bob"}
    llm(subject="test/2", **bob).ask(probe, Verdict, **ASKED)
    assert len(models.server.ledger) == 3


def test_the_row_says_what_was_asked_and_what_it_came_to(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response(status=500), GOOD)
    llm(owner="user:1/ada").ask(probe, Verdict, documents=("d1",), **ASKED)
    row = ModelCall.objects.get()
    assert (row.subject, row.number, row.role) == ("test/1", 1, "evaluator")
    assert (row.owner, row.documents) == ("user:1/ada", ["d1"])
    assert (row.prompt, len(row.prompt_hash)) == ("probe", 12)
    assert (row.model, row.provider) == ("fake@scripted", "scripted")
    assert (row.outcome, row.finish_reason) == ("ok", "stop")
    assert row.request["schema_name"] == "Verdict"
    assert [each["outcome"] for each in row.attempts] == ["server_error"]
    assert row.output_tokens == len(GOOD.text) // 4
    assert row.cost is None
    assert 0 < (row.first_token_seconds or 0) <= row.seconds


def test_a_failure_that_quotes_what_no_table_holds_is_stored(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response(status=400, body="no \0 good"))
    with pytest.raises(ModelFailure):
        llm().ask(probe, Verdict, **ASKED)
    assert "no  good" in ModelCall.objects.get().error


def test_a_stored_reply_serves_also_when_its_provider_is_not_set_any_more(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("no JSON"), GOOD)
    llm().ask(probe, Verdict, **ASKED)
    del settings.PROVIDERS["scripted"]
    assert llm().ask(probe, Verdict, **ASKED).good


def test_a_repair_that_finds_nobody_does_not_hide_what_was_wrong(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("no JSON"), Response(status=500))
    with pytest.raises(ModelFailure) as caught:
        llm().ask(probe, Verdict, **ASKED)
    assert caught.value.outcome is Outcome.MALFORMED
    assert [row.outcome for row in ModelCall.objects.all()] == ["malformed", "server_error"]


@pytest.mark.parametrize("after", [False, True])
def test_a_reply_is_stored_once_though_the_connection_broke(
    models: Scripted, probe: Prompt, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    models.says("probe", GOOD)
    monkeypatch.setattr(step_lease, "PAUSE_SECONDS", 0)
    for name in ("_begin", "_complete"):
        monkeypatch.setattr(journal, name, broken(2, getattr(journal, name), after=after))
    llm().ask(probe, Verdict, **ASKED)
    assert len(models.server.ledger) == 1
    assert ModelCall.objects.get().outcome == "ok"


def test_a_reply_is_kept_though_its_price_cannot_be_looked_up_meanwhile(
    models: Scripted, probe: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(call: Call) -> Response:
        monkeypatch.setattr("agents.llm.journal.cost", broken(2, cost, after=False))
        return GOOD

    models.says("probe", script)
    monkeypatch.setattr(step_lease, "PAUSE_SECONDS", 0)
    Price.objects.create(model=FAKE, input_per_million=1, output_per_million=1)
    llm().ask(probe, Verdict, **ASKED)
    assert (ModelCall.objects.get().cost or 0) > 0


def interrupted(probe: Prompt, **changes: Any) -> None:
    """Begin a call whose worker ends before the reply is there."""

    def end(piece: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        llm(**changes).write(probe, on_text=end, **ASKED)


def outcomes() -> list[str]:
    return list(ModelCall.objects.order_by("number").values_list("outcome", flat=True))


def test_a_call_is_stored_before_it_is_sent_with_the_most_it_can_cost(
    models: Scripted, probe: Prompt
) -> None:
    Price.objects.create(model=FAKE, input_per_million=1, output_per_million=10)
    seen: list[ModelCall] = []

    models.says("probe", Response(GOOD.text, pieces=[GOOD.text]))
    llm().write(probe, on_text=lambda _: seen.append(ModelCall.objects.get()), **ASKED)
    (sent,) = seen
    assert sent.outcome == "sent"
    assert 20 < (sent.input_tokens or 0) < 2000
    assert sent.output_tokens is None
    most = Decimal(sent.input_tokens or 0) + 10 * 100
    assert sent.cost == pytest.approx(most / 1_000_000)
    row = ModelCall.objects.get()
    assert (row.pk, row.outcome, row.output_tokens) == (sent.pk, "ok", len(GOOD.text) // 4)
    assert row.cost is not None
    assert sent.created < row.created
    assert row.cost < most / 1_000_000


def test_a_call_whose_worker_ended_is_lost_once_its_step_is_done_again(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("It is good, they say."))
    interrupted(probe)
    assert outcomes() == ["sent"]
    llm().write(probe, **ASKED)
    llm().write(probe, **ASKED)
    assert outcomes() == ["lost", "ok"]
    assert len(models.server.ledger) == 2


def test_a_call_that_is_on_its_way_answers_nobody_else(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response("It is good, they say."))
    interrupted(probe, owner="user:1/ada", fresh=60)
    again = llm(subject="test/2", owner="user:1/ada", fresh=60)
    assert again.write(probe, **ASKED).text == "It is good, they say."
    assert ModelCall.objects.get(subject="test/2").cached_from is None


def test_a_call_that_was_taken_for_lost_is_stored_when_it_is_heard_of(
    models: Scripted, probe: Prompt
) -> None:
    def lose(piece: str) -> None:
        ModelCall.objects.update(created=now() - timedelta(hours=2))
        assert journal.lose_unheard() == 1

    models.says("probe", Response(GOOD.text, pieces=[GOOD.text]))
    llm().write(probe, on_text=lose, **ASKED)
    row = ModelCall.objects.get()
    assert (row.outcome, row.error, row.reply) == ("ok", "", GOOD.text)


@pytest.mark.parametrize(("status", "lost"), [("running", 0), ("expired", 1)])
def test_a_call_is_lost_when_its_turn_has_ended_without_it(
    models: Scripted, probe: Prompt, status: str, lost: int
) -> None:
    models.says("probe", Response("It is good, they say."))
    interrupted(probe)
    turn = factories.turn(factories.conversation(), status=Status(status))
    ModelCall.objects.update(envelope=turn)
    assert journal.lose_unheard() == lost
    assert outcomes() == ["lost" if lost else "sent"]


def test_who_may_not_ask_any_more_leaves_no_call_behind(models: Scripted, probe: Prompt) -> None:
    def lapsed() -> None:
        raise step_lease.LapsedError

    with pytest.raises(step_lease.LapsedError):
        llm(before_attempt=lapsed).ask(probe, Verdict, **ASKED)
    assert not ModelCall.objects.exists()
    assert not models.server.ledger


def test_a_tool_that_a_model_wants_unasked_is_kept_and_shown_to_staff(
    models: Scripted, probe: Prompt
) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "invoices", "arguments": "{}"}}
    models.says("probe", Response("Two are open.", tool_calls=[{"index": 0, **call}]))
    assert llm().write(probe, **ASKED).text == "Two are open."
    turn = factories.turn(factories.conversation())
    step = turn.steps.order_by("number")[0]
    ModelCall.objects.update(envelope=turn, step_number=step.number)
    shown, hidden = (
        trace(turn, staff=staff)["steps"][0]["model_calls"][0] for staff in (True, False)
    )
    assert shown["tool_calls"] == [{"id": "a", "name": "invoices", "arguments": "{}"}]
    assert "tool_calls" not in hidden
