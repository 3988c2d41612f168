"""Which messages a turn sees, which leave for the summary, and that none is lost on the way."""

from typing import Any

import pytest
from pytest_django import Settings

from agents.contract import REGISTRY
from agents.names import Role, Status
from conversations.models import Conversation, Message
from conversations.services import Asker, ask
from conversations.turn_memory import LEAVING_MESSAGES, tokens
from tests import factories
from tests.conversations.test_turn_memory import end
from tests.scripted import Call, Response, Scripted, shaped

pytestmark = pytest.mark.usefixtures("transactional_db", "listening")
NOBODY = Asker(None)
FACT = "our account is called Zephyr-77"


def say(text: str, **wrote: Any) -> dict[str, Any]:
    """Have a turn, and return the memory it began with."""
    envelope = ask(text, NOBODY, session="s")
    end(envelope, **wrote)
    memory: dict[str, Any] = envelope.memory
    return memory


def texts(remarks: list[dict[str, str]]) -> list[str]:
    return [remark["text"] for remark in remarks]


def summarised(memory: dict[str, Any]) -> dict[str, Any]:
    """What the memory agent writes without a model."""
    return REGISTRY[Role.MEMORY](memory)


def test_the_history_holds_the_latest_messages_that_fit(settings: Settings) -> None:
    settings.HISTORY_TOKENS = 4 * tokens("x" * 400)
    for number in range(4):
        say(f"{number}" * 400, response="y" * 400)
    assert texts(say("And?")["history"]) == ["2" * 400, "y" * 400, "3" * 400, "y" * 400]


def test_the_last_question_and_its_answer_are_seen_however_long(settings: Settings) -> None:
    settings.HISTORY_TOKENS = 200
    say("x" * 4000, response="y" * 4000)
    assert len(say("And?")["history"]) == 2


def test_nothing_leaves_while_everything_fits() -> None:
    memories = [say(f"Question {number}") for number in range(6)]
    assert [memory["leaving"] for memory in memories] == [[]] * 6


def test_every_message_is_in_the_history_or_the_summary_of_every_turn() -> None:
    for number in range(40):
        envelope = ask(f"Question <{number}>", NOBODY, session="s")
        memory = envelope.memory
        seen = memory["summary"] + "".join(texts(memory["history"]))
        # Of rules, the summary holds some forty of the latest.
        assert all(
            f"Question <{earlier}>" in seen for earlier in range(max(0, number - 20), number)
        )
        end(envelope, **summarised(memory))


def test_a_long_backlog_leaves_in_turns_oldest_first_and_none_is_left_out() -> None:
    talk = factories.conversation("s")
    for number in range(100):
        Message.objects.create(conversation=talk, role="user", text=f"Message {number}")
    left: list[str] = []
    for number in range(6):
        memory = say(f"Turn {number}")
        left += texts(memory["leaving"])
        fold(memory)
    assert left[:100] == [f"Message {number}" for number in range(100)]
    assert left.count("Turn 0") == 1


def fold(memory: dict[str, Any]) -> None:
    """Take over what the memory agent writes, as the end of a turn does."""
    if wrote := summarised(memory):
        Conversation.objects.update(
            summary=wrote["summary_update"]["summary"],
            summarised_until=wrote["summary_update"]["until"],
        )


def test_at_most_so_many_messages_leave_at_once() -> None:
    talk = factories.conversation("s")
    for number in range(100):
        Message.objects.create(conversation=talk, role="user", text=f"Message {number}")
    assert len(say("And?")["leaving"]) == LEAVING_MESSAGES


def test_what_was_not_folded_in_leaves_again() -> None:
    for number in range(6):
        say(f"Question {number}")
    first = say("And?")
    assert texts(first["leaving"])[0] == "Question 0"
    assert texts(say("And?")["leaving"])[: len(first["leaving"])] == texts(first["leaving"])


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_what_was_folded_in_is_kept_however_the_turn_ended(status: Status) -> None:
    for number in range(6):
        say(f"Question {number}")
    envelope = ask("And?", NOBODY, session="s")
    wrote = summarised(envelope.memory)
    end(envelope, status, **wrote)
    memory = say("And now?")
    assert memory["summary"] == wrote["summary_update"]["summary"]
    assert memory["leaving"] == []
    assert texts(memory["history"])[-2] == "And?"


def test_a_fact_of_the_first_turn_is_in_the_prompt_of_turn_31(models: Scripted) -> None:
    def reply(call: Call) -> Response:
        return shaped(summary=f"The user said that {FACT}." if FACT in call.user else "Nothing.")

    models.says("memory", reply)
    for number in range(31):
        envelope = ask(f"By the way, {FACT}." if not number else "And?", NOBODY, session="s")
        done = REGISTRY[Role.MEMORY].perform(envelope.memory, models.model("memory", f"t/{number}"))
        end(envelope, **done.writes)
    assert Message.objects.count() == 62
    assert len(envelope.memory["history"]) == 12
    assert FACT in envelope.memory["summary"]
    assert len(models.server.ledger) <= 11


def test_a_model_that_fails_for_good_loses_nothing(models: Scripted) -> None:
    models.says("memory", Response("I would rather not."))
    for number in range(12):
        envelope = ask(f"Question <{number}>", NOBODY, session="s")
        done = REGISTRY[Role.MEMORY].perform(envelope.memory, models.model("memory", f"t/{number}"))
        end(envelope, **done.writes)
    memory = say("And?")
    seen = memory["summary"] + "".join(texts(memory["history"]))
    assert all(f"Question <{number}>" in seen for number in range(12))


def test_facts_are_few_and_the_newest_win() -> None:
    for number in range(25):
        say("x", memory_updates={"facts": [f"fact {number}", "Keep it brief"]})
    memory = say("And?")
    facts = memory["facts"]
    assert len(facts) == 20
    assert facts[-1] == "Keep it brief"
    assert "fact 24" in facts
    assert "fact 0" not in facts
    # What is no fact any more is told in the summary.
    lines = memory["summary"].splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == [f"fact {number}" for number in range(6)]


def test_a_model_that_comes_back_is_given_the_messages_it_failed_to_condense(
    models: Scripted,
) -> None:
    models.says("memory", Response("I would rather not."))
    texts = [f"Question <{number}> " + "x" * 300 for number in range(12)]
    for number, text in enumerate(texts):
        if number == 11:
            models.says("memory", shaped(summary="Twelve questions."))
        envelope = ask(text, NOBODY, session="s")
        done = REGISTRY[Role.MEMORY].perform(envelope.memory, models.model("memory", f"t/{number}"))
        end(envelope, **done.writes)
    left = [remark["text"] for remark in envelope.memory["leaving"] if remark["role"] == "user"]
    assert left == texts[: len(left)]
    assert [text for text in left if text not in models.server.ledger[-1].user] == []
    assert say("And?")["summary"] == "Twelve questions."
