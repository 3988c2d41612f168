"""Model: repairs, second models, and what is said when nothing helps."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from pydantic import BaseModel
from pytest_django import DjangoAssertNumQueries

from agents.llm import breaker, dialects
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply
from agents.models import ModelCall
from assistant.lab.model_server import Script
from knowledge.providers import Provider
from prompts.prompt import Prompt
from prompts.texts import replaced
from tests.agents.llm.probe import GOOD, PROBE, Verdict, llm
from tests.scripted import Call, Response, Scripted, shaped

ASKED: dict[str, Any] = {"question": "Is it good?", "hour": "noon"}


def by_model(**said: Response) -> Script:
    return lambda call: said[call.body["model"]]


def outcomes() -> list[tuple[str, str]]:
    return list(ModelCall.objects.values_list("model", "outcome"))


def test_a_reply_has_its_shape(models: Scripted, probe: Prompt) -> None:
    models.says("probe", GOOD)
    assert llm().ask(probe, Verdict, **ASKED) == Verdict(good=True, why="because")
    (call,) = models.server.ledger
    schema = call.body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["required"] == ["good", "why"]
    assert schema["schema"]["properties"]["why"]["description"] == "at most 40 characters."
    assert schema["schema"]["properties"]["why"]["maxLength"] == 40


@pytest.mark.parametrize(
    ("said", "outcome", "problem"),
    [
        (Response("It is good."), Outcome.MALFORMED, "not JSON"),
        (shaped(good=True), Outcome.WRONG_SCHEMA, "why: Field required"),
        (shaped(good=True, why="x" * 41), Outcome.WRONG_SCHEMA, "at most 40 characters"),
        (shaped(good=True, why="a\0b\ufffdc"), Outcome.MALFORMED, "no text"),
        (Response(""), Outcome.EMPTY, "the reply is empty"),
    ],
)
def test_a_reply_without_its_shape_is_mended_once_by_the_same_model(
    models: Scripted, probe: Prompt, said: Response, outcome: Outcome, problem: str
) -> None:
    models.says("probe", said, GOOD)
    assert llm().ask(probe, Verdict, **ASKED).good
    assert outcomes() == [("fake@scripted", outcome), ("fake@scripted", "ok")]
    *_, before, request = models.server.ledger[-1].body["messages"]
    assert before == {"role": "assistant", "content": said.text or "(nothing)"}
    assert problem in request["content"]
    assert '"good"' in request["content"]


class Another(BaseModel):
    """Another shape."""

    good: bool
    why: str


def test_a_model_that_missed_a_shape_is_told_it_until_it_has_kept_to_it(
    models: Scripted, probe: Prompt
) -> None:
    def asked(shape: type[BaseModel] = Verdict) -> bool:
        """Whether the prompt spells the shape out."""
        llm(subject=f"test/{len(models.server.ledger)}").ask(probe, shape, **ASKED)
        return "JSON schema" in models.server.ledger[-1].system

    models.says("probe", Response("It is good."), GOOD)
    asked()
    assert "JSON schema" not in models.server.ledger[0].system
    assert not asked(Another)
    assert [asked() for _ in range(dialects.FITTING)] == [True] * (dialects.FITTING - 1) + [False]


def test_a_reply_far_beyond_its_tokens_is_not_asked_for_again(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response(" ".join(map(str, range(100_000)))))
    for way in (lambda: llm().write(probe, **ASKED), lambda: llm().ask(probe, Verdict, **ASKED)):
        models.server.ledger.clear()
        with pytest.raises(ModelFailure, match="not read further"):
            way()
        assert len(models.server.ledger) == 1


def test_a_shaped_reply_that_repeats_itself_is_mended_without_more_room(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response('{"why": "' + "and so on " * 200, finish="length"), GOOD)
    assert llm().ask(probe, Verdict, **ASKED).good
    first, second = models.server.ledger
    assert second.body["max_tokens"] == first.body["max_tokens"]
    assert "over and over" in second.user


TOLD = "Keep close to the words of the passage, whose numbers and units stay as they are there."


@pytest.fixture
def strict_probe(probe: Prompt) -> Iterator[Prompt]:
    """The prompt with a long instruction."""
    with replaced("probe", PROBE.replace("You answer.", TOLD)):
        yield probe


def test_a_reply_that_is_never_right_is_a_failure_that_names_the_remedy(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("It is good."))
    with pytest.raises(ModelFailure, match=r"fake@scripted at http://.* not JSON") as caught:
        llm().ask(probe, Verdict, **ASKED)
    assert caught.value.outcome is Outcome.MALFORMED
    assert len(models.server.ledger) == 2


def test_a_shaped_reply_that_was_cut_gets_twice_the_room_before_another_model(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response('{"good": tr', finish="length"), GOOD)
    assert llm("spare@scripted").ask(probe, Verdict, **ASKED).good
    assert [call.body["max_tokens"] for call in models.server.ledger] == [100, 200]
    assert outcomes() == [("fake@scripted", "truncated"), ("fake@scripted", "ok")]


def test_a_model_that_thought_until_it_was_cut_gets_four_times_the_room(
    models: Scripted, probe: Prompt
) -> None:
    thinking = Response("<think>Well, is it", finish="length")
    models.says("probe", thinking, GOOD)
    assert llm().ask(probe, Verdict, **ASKED).good
    models.says("probe", thinking, Response("It is."))
    heard: list[str] = []
    written = llm(subject="test/2").write(probe, on_text=heard.append, **ASKED)
    assert (written.text, "".join(heard)) == ("It is.", "It is.")
    assert [call.body["max_tokens"] for call in models.server.ledger] == [100, 400, 100, 400]


def test_a_model_that_only_thinks_is_not_given_room_again_and_again(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response("", finish="length"))
    for way in (lambda: llm().write(probe, **ASKED), lambda: llm().ask(probe, Verdict, **ASKED)):
        models.server.ledger.clear()
        with pytest.raises(ModelFailure, match=r"raise <ROLE>_MAX_TOKENS") as caught:
            way()
        assert caught.value.outcome is Outcome.TRUNCATED
        assert len(models.server.ledger) == 2


def test_a_provider_that_wants_rest_is_not_waited_for_when_another_model_can_answer(
    models: Scripted, probe: Prompt
) -> None:
    resting = Response(status=429, headers={"Retry-After": "20"})
    models.says("probe", by_model(fake=resting, spare=GOOD))
    assert llm("spare@scripted").ask(probe, Verdict, **ASKED).good
    assert models.waits == []
    with pytest.raises(ModelFailure):
        llm(subject="test/2").ask(probe, Verdict, **ASKED)
    assert models.waits == [20.0, 20.0]


def test_a_written_text_that_was_cut_is_returned_as_such(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response("half a sen", finish="length"))
    assert llm().write(probe, **ASKED).finish_reason == "length"
    assert outcomes() == [("fake@scripted", "ok")]


@pytest.mark.parametrize(
    "said",
    [
        Response(status=500), Response(status=401), Response(status=404), Response(status=400),
        Response("", refusal="No."), Response("", finish="content_filter"), Response("no JSON"),
    ],
)  # fmt: skip
def test_the_second_model_is_asked_when_the_first_cannot_answer(
    models: Scripted, probe: Prompt, said: Response
) -> None:
    models.says("probe", by_model(fake=said, spare=GOOD))
    assert llm("spare@scripted").ask(probe, Verdict, **ASKED).good
    assert models.server.ledger[-1].body["model"] == "spare"


def test_with_the_breaker_open_the_second_model_is_asked_at_once(
    models: Scripted, probe: Prompt
) -> None:
    settings.PROVIDERS["other"] = Provider("other", models.server.base_url)
    breaker.forget("other")
    for _ in range(breaker.FAILURES):
        breaker.failed("scripted", ModelFailure(Outcome.SERVER_ERROR, "it fails"))
    models.says("probe", GOOD)
    llm("spare@other").ask(probe, Verdict, **ASKED)
    assert [call.body["model"] for call in models.server.ledger] == ["spare"]
    assert outcomes() == [("fake@scripted", "breaker_open"), ("spare@other", "ok")]


def test_a_provider_that_is_down_soon_costs_nobody_any_time(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", Response(status=500))
    outcomes = []
    for number in range(4):
        with pytest.raises(ModelFailure) as caught:
            llm(subject=f"test/{number}").ask(probe, Verdict, **ASKED)
        outcomes.append(caught.value.outcome)
    assert outcomes == ["server_error", "server_error", "breaker_open", "breaker_open"]
    assert len(models.server.ledger) == breaker.FAILURES


def test_a_refusal_is_not_hidden_by_a_second_model_that_is_down(
    models: Scripted, probe: Prompt
) -> None:
    down = by_model(fake=Response("", refusal="No."), spare=Response(status=500))
    models.says("probe", down)
    with pytest.raises(ModelFailure) as caught:
        llm("spare@scripted").ask(probe, Verdict, **ASKED)
    assert caught.value.outcome is Outcome.REFUSED
    assert not caught.value.outage


def written(models: Scripted, prompt: Prompt, *said: str, **asked: Any) -> tuple[Reply, str]:
    """The reply, and what a listener has heard of it in the end."""
    models.says("probe", *map(Response, said))
    heard: list[str] = []
    reply = llm(subject=f"test/{said}").write(
        prompt, on_text=heard.append, on_restart=heard.clear, **ASKED | asked
    )
    return reply, "".join(heard)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("```markdown\nIt is good.\n```", "It is good."),
        ("```\nIt is good, as they all say.\n```\n", "It is good, as they all say."),
        ("Sure! Here it is:\n\n```md\nIt is good.\n```", "It is good."),
        ("Sure! Here it is:\n\nIt is good.", "\nIt is good."),
        ("Good is this:\n- all", "Good is this:\n- all"),
        ("```\npip install good\n```", "```\npip install good\n```"),
        ("```sh\ngood --all\n```", "```sh\ngood --all\n```"),
        ("```\na\n```\nIt is good.", "```\na\n```\nIt is good."),
        ("A thought.</think>It is good.", "It is good."),
    ],
)
def test_what_is_put_around_an_answer_is_taken_off_and_not_shown(
    models: Scripted, probe: Prompt, said: str, text: str
) -> None:
    reply, heard = written(models, probe, said)
    assert reply.text == heard == text


def test_a_text_that_repeats_its_instructions_is_none_and_withdrawn(
    models: Scripted, strict_probe: Prompt
) -> None:
    heard: list[str] = []
    models.says("probe", Response(f"It is good to know. {TOLD}"))
    with pytest.raises(ModelFailure, match="repeats its instructions") as caught:
        llm().write(strict_probe, on_text=heard.append, on_restart=heard.clear, **ASKED)
    assert caught.value.outcome is Outcome.MALFORMED
    assert (heard, len(models.server.ledger)) == ([], 1)
    assert outcomes() == [("fake@scripted", "malformed")]


EXAMPLES = "\n".join(
    f'<question>{each}?</question>\n{{"good": true, "why": "{each}"}}'
    for each in (
        "Whether the boiler can be opened while the water in it is hot",
        "Whether anybody may switch it off who has no key to the cellar",
        "Whether the valve below the tank is to be closed in the winter",
    )
)


def test_the_values_of_an_example_in_an_echo_are_no_reply(models: Scripted, probe: Prompt) -> None:
    with replaced("probe", PROBE.replace("You answer.", f"You answer.\n\n{EXAMPLES}")):
        models.says("probe", Response(EXAMPLES), GOOD)
        assert llm().ask(probe, Verdict, **ASKED).why == json.loads(GOOD.text)["why"]
    assert outcomes() == [("fake@scripted", "malformed"), ("fake@scripted", "ok")]


def test_a_text_may_repeat_what_the_data_says(models: Scripted, strict_probe: Prompt) -> None:
    assert written(models, strict_probe, TOLD, question=TOLD)[0].text == TOLD


def test_names_of_elements_are_no_part_of_a_reply(models: Scripted, probe: Prompt) -> None:
    def echo(call: Call) -> Response:
        name = call.user.partition(">")[0].removeprefix("<")
        return Response(json.dumps({"good": True, "why": f"says {name}"}))

    models.says("probe", echo)
    with pytest.raises(ModelFailure, match="names of elements"):
        llm().ask(probe, Verdict, **ASKED)


@pytest.mark.parametrize(
    "cut",
    ["It is descaled. Rinse the boi", "Rinse the boi [C1]", "It is so [C", "It is \ufffd."],
)
def test_a_text_that_breaks_off_in_a_word_is_asked_for_once_more(
    models: Scripted, probe: Prompt, cut: str
) -> None:
    asked = {"question": "Is the boiler good?"}
    reply, heard = written(models, probe, cut, "It is good.", **asked)
    assert reply.text == heard == "It is good."
    assert outcomes() == [("fake@scripted", "malformed"), ("fake@scripted", "ok")]


def test_a_text_that_always_breaks_off_is_returned_as_a_fragment(
    models: Scripted, probe: Prompt
) -> None:
    asked = {"question": "Is the boiler good?"}
    reply, _ = written(models, probe, "It is descaled. Rinse the boi", **asked)
    assert (reply.finish_reason, reply.is_cut) == ("fragment", True)
    assert len(models.server.ledger) == 2


def test_pieces_of_the_first_model_are_void_when_the_second_writes(
    models: Scripted, probe: Prompt
) -> None:
    filtered = Response("It is good or ba", finish="content_filter")
    models.says("probe", by_model(fake=filtered, spare=Response("good")))
    heard: list[str] = []
    llm("spare@scripted").write(
        probe, on_text=heard.append, on_restart=lambda: heard.append("--"), **ASKED
    )
    assert "".join(heard) == "It is good or ba--good"


def test_nothing_is_void_when_the_first_model_said_nothing(models: Scripted, probe: Prompt) -> None:
    models.says("probe", by_model(fake=Response(status=404), spare=Response("good")))
    heard: list[str] = []
    llm("spare@scripted").write(
        probe, on_text=heard.append, on_restart=lambda: heard.append("--"), **ASKED
    )
    assert "".join(heard) == "good"


def test_null_characters_spelled_in_json_are_sent_back(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Response('{"good": true, "why": "a\\u0000b\\ud800c"}'), GOOD)
    assert llm().ask(probe, Verdict, **ASKED).why == "because"
    assert outcomes() == [("fake@scripted", "malformed"), ("fake@scripted", "ok")]


def test_a_call_takes_few_statements(
    models: Scripted, probe: Prompt, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    models.says("probe", GOOD)
    # Looked for; earlier ones given up, the price, and the row between its savepoint's begin and
    # end, before it is sent; the price and what came of it.
    with django_assert_num_queries(8):
        llm().ask(probe, Verdict, **ASKED)
