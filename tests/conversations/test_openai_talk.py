"""A client of OpenAI's API goes on with the conversation in which the same was said before."""

from typing import Any

import openai
import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.utils.timezone import now

from agents.models import Envelope
from conversations import handover
from conversations.models import Assistant, Conversation, Handover, Message
from conversations.openai_models import EVERYTHING
from tests import factories
from tests.conversations.conftest import OpenAIFor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("working")]

# Nothing of it is in the documents.
QUASARS = "Which quasar pulses brightest in Andromeda?"
Said = list[dict[str, Any]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


class Chat:
    """A client that keeps what was said, and sends all of it with every message."""

    def __init__(self, client: openai.OpenAI, **more: Any) -> None:
        self.client, self.more, self.said = client, {"model": EVERYTHING} | more, Said()

    def say(self, text: str, **more: Any) -> str:
        """Return the answer."""
        self.said.append(user(text))
        asked: Any = self.more | {"messages": self.said} | more
        answer = self.client.chat.completions.create(**asked)
        told = str(answer.choices[0].message.content)
        self.said.append(assistant(told))
        return told


@pytest.fixture
def chat(openai_for: OpenAIFor, clerk: User) -> Chat:
    factories.collection()
    return Chat(openai_for(clerk))


def talks() -> int:
    return Conversation.objects.count()


def latest() -> dict[str, Any]:
    memory: dict[str, Any] = Envelope.objects.latest("create_ts").memory
    return memory


def history() -> list[tuple[str, str]]:
    return [(each["role"], each["text"]) for each in latest()["history"]]


def test_a_chat_is_one_conversation_and_an_open_question_is_gone_on_with(chat: Chat) -> None:
    asked_back = chat.say(QUASARS)
    chat.say("The third brightest quasar there")
    assert talks() == 1
    memory = latest()
    assert memory["open_clarification"]["question"] == QUASARS
    assert memory["clarification_rounds"] == 1
    assert history() == [("user", QUASARS), ("assistant", asked_back)]


def test_what_we_never_heard_is_the_history_of_a_new_conversation(chat: Chat) -> None:
    chat.said = [
        {"role": "system", "content": "Be brief."},
        user("What are unused days?"),
        {"role": "assistant", "content": None},
        {"role": "tool", "content": "7", "tool_call_id": "t"},
        assistant("Days of leave.\0"),
    ]
    chat.say("/help")
    assert history() == [("user", "What are unused days?"), ("assistant", "Days of leave.")]
    chat.say("/help")
    assert talks() == 1
    assert len(history()) == 4


def test_a_question_that_is_changed_or_asked_again_begins_anew(chat: Chat) -> None:
    first = chat.say(QUASARS)
    chat.say("The third brightest quasar there")
    chat.said = [user(QUASARS), assistant(first)]
    chat.say("The fourth one")
    assert talks() == 2
    assert history() == [("user", QUASARS), ("assistant", first)]
    chat.said = []
    chat.say(QUASARS)
    assert talks() == 3


@pytest.mark.parametrize("change", ["key", "user", "model", "told", "days"])
def test_who_is_another_or_was_told_another_thing_is_not_taken_for_the_same(
    chat: Chat, openai_for: OpenAIFor, change: str
) -> None:
    chat.more["user"] = "ann"
    chat.say(QUASARS)
    if change == "key":
        chat.client = openai_for(User.objects.create_user("other"))
    elif change == "user":
        chat.more["user"] = "bob"
    elif change == "model":
        chat.more["model"] = "handbook"
    elif change == "told":
        chat.said[-1]["content"] = "Sirius."
    else:
        Message.objects.filter(role="assistant").update(text="Sirius.")
    chat.say("The third brightest quasar there")
    assert talks() == 2
    assert latest()["open_clarification"] is None


def test_very_long_chats_are_still_one_conversation(chat: Chat) -> None:
    chat.said = [each for n in range(30) for each in (user(f"/help {n}"), assistant(f"Help {n}."))]
    chat.say("/help")
    chat.say("/help")
    assert talks() == 1
    assert Message.objects.count() == 2 * 20 + 4


def test_a_client_may_leave_the_history_to_us(chat: Chat) -> None:
    for text in (QUASARS, "The third brightest quasar there"):
        chat.say(text, messages=[user(text)], extra_body={"conversation_id": "desk-7"})
    assert Conversation.objects.get().session == "desk-7"
    assert latest()["open_clarification"]["question"] == QUASARS


def test_the_model_says_each_time_what_is_searched(chat: Chat) -> None:
    factories.collection("loans")
    kept = {"extra_body": {"conversation_id": "desk-7"}}
    for model, searched in (("handbook", ["handbook"]), ("loans", ["loans"]), (EVERYTHING, [])):
        chat.say("/help", model=model, **kept)
        assert latest()["collections"] == searched


def test_a_conversation_stays_with_its_assistant(chat: Chat) -> None:
    Assistant.objects.create(name="bank")
    kept = {"extra_body": {"conversation_id": "desk-7"}}
    chat.say("/help", model="bank", **kept)
    with pytest.raises(openai.ConflictError) as caught:
        chat.say("/help", **kept)
    assert caught.value.code == "other_assistant"


def test_a_system_message_is_a_wish_for_the_tone(chat: Chat) -> None:
    Assistant.objects.create(name="bank", tone="Formal.")
    chat.said = [
        {"role": "system", "content": "Be\nbrief."},
        {"role": "developer", "content": [{"type": "text", "text": "x" * 500}]},
    ]
    chat.say("/help", model="bank")
    tone = latest()["assistant"]["tone"]
    assert tone.startswith("Formal. Be brief. xxx")
    assert len(tone) == len("Formal. ") + 300
    assert history() == []


def test_a_message_sent_again_with_its_key_begins_no_other_turn(chat: Chat) -> None:
    again: dict[str, Any] = {"extra_headers": {"Idempotency-Key": "k1"}}
    chat.say(QUASARS)
    said = list(chat.said)
    told = chat.say("The third brightest quasar there", **again)
    chat.said = said
    assert chat.say("The third brightest quasar there", **again) == told
    assert Envelope.objects.count() == 2
    chat.said = said
    with pytest.raises(openai.UnprocessableEntityError):
        chat.say("Another one", **again)


def test_staff_hear_what_is_said_to_them_and_are_heard(chat: Chat, settings: LazySettings) -> None:
    settings.HANDOVER = True
    anna = User.objects.create_user("anna", is_staff=True)
    assert "a person will answer you" in chat.say("I want to talk to a person.")
    assert "Our staff have your message" in chat.say("It is about invoice 7.")
    row = Handover.objects.get()
    handover.say(row.pk, anna, "Hello, I am Anna.")
    handover.say(row.pk, anna, "It is corrected.")
    told = chat.say("Thank you!")
    assert told.startswith("Hello, I am Anna.\n\nIt is corrected.\n\nOur staff have")
    handover.say(row.pk, anna, "Goodbye.")
    handover.give_back(row.pk, anna, seen=now(), note="Beware of this one.")
    told = chat.say("/help")
    assert told.startswith("Goodbye.\n\n")
    assert "Beware" not in told
    assert "Our staff" not in told
    assert talks() == 1
